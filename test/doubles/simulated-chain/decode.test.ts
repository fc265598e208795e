import fc from "fast-check";
import { keccak256 } from "viem";
import { expect, it } from "vitest";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import { SampleSender } from "./sample-transactions.ts";
import { recoverFromSignature } from "./sender.ts";
import { decodeTransaction } from "./transaction.ts";

const hex = (bytes: number) => fc.uint8Array({ minLength: bytes, maxLength: bytes }).map(toHex);
const toHex = (bytes: Uint8Array): Hex => `0x${Buffer.from(bytes).toString("hex")}`;
const amount = fc.bigInt({ min: 0n, max: 2n ** 128n });

const fields = fc.record({
  chainId: fc.integer({ min: 1, max: 2 ** 40 }),
  nonce: fc.integer({ min: 0, max: 2 ** 50 }),
  to: fc.option(hex(20)),
  value: fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
  data: fc.uint8Array({ maxLength: 300 }).map(toHex),
  gas: fc.bigInt({ min: 0n, max: 2n ** 60n }),
  fee: amount,
  tip: amount,
  accessList: fc.array(fc.record({ address: hex(20), storageKeys: fc.array(hex(32), { maxLength: 3 }) }), {
    maxLength: 3,
  }),
  seed: fc.integer({ min: 1, max: 1_000_000 }),
});

it("the simulated chain recovers the sender of transactions that viem signed", async () => {
  await fc.assert(
    fc.asyncProperty(fields, fc.constantFrom(0, 1, 2), async (tx, type) => {
      const { account, address } = new SampleSender(tx.seed);
      const to = tx.to === null ? {} : { to: tx.to };
      const { chainId, nonce, value, data, gas } = tx;
      const [low, high] = tx.fee < tx.tip ? [tx.fee, tx.tip] : [tx.tip, tx.fee];
      const common = { chainId, nonce, value, data, gas, ...to };
      const raw =
        type === 0
          ? await account.signTransaction({ ...common, type: "legacy", gasPrice: high })
          : type === 1
            ? await account.signTransaction({ ...common, type: "eip2930", gasPrice: high, accessList: tx.accessList })
            : await account.signTransaction({
                ...common,
                type: "eip1559",
                maxFeePerGas: high,
                maxPriorityFeePerGas: low,
                accessList: tx.accessList,
              });
      const decoded = decodeTransaction(raw);
      expect(decoded).toMatchObject({
        type,
        hash: keccak256(raw),
        chainId,
        nonce,
        value,
        data,
        gas,
        maxFeePerGas: high,
      });
      expect(decoded.to).toBe(tx.to as Address | null);
      expect(decoded.maxPriorityFeePerGas).toBe(type === 2 ? low : high);
      expect(decoded.intrinsicGas).toBe(expectedGas(tx, type));
      expect(recoverFromSignature(decoded)).toBe(address);
    }),
    { numRuns: 60 },
  );
});

interface GasFields {
  readonly to: Hex | null;
  readonly data: Hex;
  readonly accessList: readonly { readonly storageKeys: readonly Hex[] }[];
}

function expectedGas(tx: GasFields, type: number): bigint {
  const bytes = [...Buffer.from(tx.data.slice(2), "hex")];
  const calldata = bytes.reduce((sum, byte) => sum + (byte === 0 ? 4 : 16), 0);
  const lists = type === 0 ? [] : tx.accessList;
  const keys = lists.reduce((sum, entry) => sum + entry.storageKeys.length, 0);
  const creation = tx.to === null ? 32_000 + 2 * Math.ceil(bytes.length / 32) : 0;
  return BigInt(21_000 + creation + calldata + 2_400 * lists.length + 1_900 * keys);
}
