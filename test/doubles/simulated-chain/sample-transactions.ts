import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import type { Address, Hex } from "../../../src/domain/lane.ts";

export const GWEI = 1_000_000_000n;
export const ETHER = GWEI * GWEI;

export interface SampleFields {
  readonly chainId?: number;
  readonly nonce: number;
  readonly to?: Address | null;
  readonly value?: bigint;
  readonly data?: Hex;
  readonly gas?: bigint;
  readonly maxFeePerGas?: bigint;
  readonly maxPriorityFeePerGas?: bigint;
}

/** A sender whose transactions viem signs, independently of Fencepost's own serialiser. */
export class SampleSender {
  readonly address: Address;
  readonly account: PrivateKeyAccount;

  constructor(seed: number) {
    this.account = privateKeyToAccount(`0x${seed.toString(16).padStart(64, "0")}`);
    this.address = this.account.address.toLowerCase() as Address;
  }

  sign({ to = `0x${"99".repeat(20)}`, ...fields }: SampleFields): Promise<Hex> {
    return this.account.signTransaction({
      type: "eip1559",
      chainId: 31_337,
      gas: 21_000n,
      value: 0n,
      maxFeePerGas: 10n * GWEI,
      maxPriorityFeePerGas: GWEI,
      ...(to === null ? {} : { to }),
      ...fields,
    });
  }
}
