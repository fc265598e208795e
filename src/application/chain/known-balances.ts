/**
 * What the chain last said of balances, to whichever loop asked: a list of a thousand signers shows it, and must not ask a
 * thousand questions for that. Nothing is decided by it.
 */
import type { Address } from "../../domain/lane.ts";
import type { Chain } from "../../ports/chain.ts";

export class KnownBalances {
  private readonly balances = new Map<Address, bigint>();

  of(address: Address): bigint | null {
    return this.balances.get(address) ?? null;
  }

  /** The same chain, overheard. */
  overhear(chain: Chain): Chain {
    const balance: Chain["balance"] = async (address) => {
      const wei = await chain.balance(address);
      this.balances.set(address, wei);
      return wei;
    };
    const simulate: Chain["simulate"] = async (call) => {
      const simulation = await chain.simulate(call);
      if (simulation.outcome === "ok") this.balances.set(call.from, simulation.balance);
      return simulation;
    };
    const overheard: Partial<Chain> = { balance, simulate };
    return new Proxy(chain, {
      get: (target, name) => {
        const method: unknown = Reflect.get(overheard, name) ?? Reflect.get(target, name, target);
        return typeof method === "function" ? method.bind(target) : method;
      },
    });
  }
}
