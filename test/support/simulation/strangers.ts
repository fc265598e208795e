import type { Address } from "../../../src/domain/lane.ts";
import { SIGNERS } from "../world.ts";
import { Actor } from "./actor.ts";
import type { Crew } from "./crew.ts";

/**
 * Another program that has the same keys. It uses nonces of ours, on chain or in the pool, whatever we have given them to.
 */
export class Strangers extends Actor {
  /** Uses some nonces of some keys before any node runs. */
  beBefore(): void {
    for (const signer of SIGNERS) {
      if (this.dice.chance(0.5)) continue;
      for (const [nonce, { transaction }] of this.world.chain.mineForeign(signer, 3).transactions.entries())
        this.world.hidden.set(transaction.hash, { signer, nonce });
    }
  }

  /** What may happen in one step of a simulation. */
  step(crew: Crew): void {
    const { dice } = this;
    const { nodeSigners } = this.world;
    const signer = nodeSigners.length > 0 && dice.chance(0.7) ? dice.pick(nodeSigners) : dice.pick(SIGNERS);
    if (dice.chance(0.08)) this.mine(signer, crew);
    if (dice.chance(0.06)) this.send(signer, crew);
  }

  /** Its transaction is in a block before ours. */
  private mine(signer: Address, crew: Crew): void {
    if (this.dice.chance(0.4)) crew.lagSecond(this.dice);
    const { nonce } = this.world.chain.account(signer);
    const block = this.world.chain.mineForeign(signer);
    for (const { transaction } of block.transactions) this.world.hidden.set(transaction.hash, { signer, nonce });
    crew.count("nonce used by another program");
  }

  /** Its transaction waits in the pool, at the next nonce that nobody uses there. */
  private send(signer: Address, crew: Crew): void {
    const { hash, nonce } = this.world.chain.injectForeign(signer);
    this.world.hidden.set(hash, { signer, nonce });
    crew.count("pending transaction of another program");
  }
}
