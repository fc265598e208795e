import type { ToSign } from "../../../src/domain/keys/signing.ts";
import type { Address } from "../../../src/domain/lane.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { CHAIN_ID, type World, type WorldNode } from "../world.ts";
import type { Stops } from "./stops.ts";

/** How long a key takes at most to sign a batch, in ms. */
const SLOWEST_MS = 600;

/** Checks at every use of a key for transactions that its node may use it, and makes some signatures slow. */
export class KeyWatch {
  readonly violations: string[] = [];
  /** True once somebody has set the database's clock. */
  wasSet = false;
  private readonly world: World;
  private readonly dice: Dice;
  private readonly stops: Stops;

  constructor(world: World, dice: Dice, stops: Stops) {
    this.world = world;
    this.dice = dice;
    this.stops = stops;
  }

  follow(node: WorldNode): void {
    const sign = node.signer.sign.bind(node.signer);
    node.signer.sign = async (address: Address, transactions: readonly ToSign[], term = 0) => {
      this.look(node, address, transactions, term);
      const signed = await sign(address, transactions, term);
      if (this.dice.chance(0.15)) await this.world.clock.sleep(this.dice.int(1, SLOWEST_MS));
      return signed;
    };
  }

  private look(node: WorldNode, signer: Address, transactions: readonly ToSign[], term: number): void {
    const { state } = this.world.database;
    const row = state.lane({ chainId: CHAIN_ID, signer });
    const complain = (why: string) => this.violations.push(`${node.url} has the key of ${signer} used ${why}`);
    if (state.instances.get(row?.owner ?? "")?.url === node.url && term !== row?.token)
      complain(`under token ${term}, not ${row?.token}`);
    // A deadline is kept by the node's own clock. The database's tells it only while nobody sets it.
    if (this.wasSet) return;
    // What waited already may be on its way to the key, and is not sent.
    const stopped = this.stops.since(signer, node);
    const begun = transactions.filter(({ nonce }) => stopped !== null && this.createdAt(signer, nonce) > stopped);
    if (begun.length > 0) complain(`for ${begun.length} that were created after a stop was answered`);
    const lives = [...state.instances.values()].filter(({ url }) => url === node.url);
    if (!lives.some(({ expiresAt }) => expiresAt > this.world.clock.now())) complain("after its deadline");
  }

  private createdAt(signer: Address, nonce: number): Date {
    const rows = [...this.world.database.state.transactions.values()];
    const row = rows.find((each) => each.lane.signer === signer && each.nonce === nonce);
    // What an operator or a hook asked for is signed at once, and waits for the end of the stop.
    return row?.state === "ALLOCATED" && row.change === undefined ? row.createdAt : new Date(0);
  }
}
