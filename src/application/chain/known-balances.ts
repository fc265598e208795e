import type { Address } from "../../domain/lane.ts";
import type { Clock } from "../../ports/clock.ts";

/** Last known balances and when each was read. No decision about money uses them without asking the chain. */
export class KnownBalances {
  private readonly clock;
  private readonly read = new Map<Address, { readonly balance: bigint; readonly at: Date }>();

  constructor(clock: Pick<Clock, "now">) {
    this.clock = clock;
  }

  set(address: Address, balance: bigint): void {
    this.read.set(address, { balance, at: this.clock.now() });
  }

  get(address: Address): bigint | undefined {
    return this.read.get(address)?.balance;
  }

  has(address: Address): boolean {
    return this.read.has(address);
  }

  /** Time at which the balance was read; null if it is unknown. */
  asOf(address: Address): Date | null {
    return this.read.get(address)?.at ?? null;
  }
}
