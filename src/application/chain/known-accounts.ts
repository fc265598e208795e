/**
 * What the chain last said of accounts, to whichever loop asked: a list of a thousand signers shows it, and must not ask
 * three thousand questions for that. Nothing is decided by it.
 */
import type { Address } from "../../domain/lane.ts";
import type { Chain } from "../../ports/chain.ts";

export interface KnownAccount {
  readonly latest: number | null;
  readonly pending: number | null;
  readonly balance: bigint | null;
}

export const NOTHING_KNOWN: KnownAccount = { latest: null, pending: null, balance: null };

export class KnownAccounts {
  private readonly accounts = new Map<Address, KnownAccount>();

  of(address: Address): KnownAccount {
    return this.accounts.get(address) ?? NOTHING_KNOWN;
  }

  /** The same chain, overheard. */
  overhear(chain: Chain): Chain {
    const transactionCount: Chain["transactionCount"] = async (address, tag) => {
      const count = await chain.transactionCount(address, tag);
      this.note(address, { [tag]: count });
      return count;
    };
    const balance: Chain["balance"] = async (address) => {
      const wei = await chain.balance(address);
      this.note(address, { balance: wei });
      return wei;
    };
    const simulate: Chain["simulate"] = async (call) => {
      const simulation = await chain.simulate(call);
      if (simulation.outcome === "ok") this.note(call.from, { balance: simulation.balance });
      return simulation;
    };
    const transactionCountEverywhere: Chain["transactionCountEverywhere"] = async (
      address,
      atBlock,
      tag = "latest",
    ) => {
      const answers = await chain.transactionCountEverywhere(address, atBlock, tag);
      const said = answers.find(({ kind }) => kind === "says");
      if (said?.kind === "says") this.note(address, { [tag]: said.count });
      return answers;
    };
    const overheard: Partial<Chain> = { transactionCount, transactionCountEverywhere, balance, simulate };
    return new Proxy(chain, {
      get: (target, name) => {
        const method: unknown = Reflect.get(overheard, name) ?? Reflect.get(target, name, target);
        return typeof method === "function" ? method.bind(target) : method;
      },
    });
  }

  private note(address: Address, known: Partial<KnownAccount>): void {
    this.accounts.set(address, { ...this.of(address), ...known });
  }
}
