import type { LaneAction, TransactionAction, TransactionView } from "../../src/application/api.ts";
import type { TransactionRow } from "../doubles/memory-store/state.ts";
import { SIGNER, transfer, World, type WorldNode, type WorldOptions } from "./world.ts";

/** Test environment with an operator, who carries out actions on a node and reads their results. */
export class OperatedWorld {
  readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  async create(entry: WorldNode, overrides: Parameters<typeof transfer>[0] = {}): Promise<string> {
    const { txId } = await this.world.settle(entry.node.api.create(transfer(overrides)));
    return txId;
  }

  /** Creates a transaction and waits until a node has accepted it. */
  async sent(entry: WorldNode, overrides: Parameters<typeof transfer>[0] = {}): Promise<string> {
    const txId = await this.create(entry, overrides);
    await this.world.until(() => this.row(txId).subState === "BROADCAST");
    return txId;
  }

  act(
    entry: WorldNode,
    action: TransactionAction,
    asked: { txId: string; request?: object },
  ): Promise<TransactionView> {
    const request = { reason: "because", ...asked.request };
    return this.world.settle(entry.node.api.act({ action, txId: asked.txId, request, actor: "operator:ops" }));
  }

  lane(entry: WorldNode, action: LaneAction, more: object = {}) {
    const request = { reason: "maintenance", ...more };
    return this.world.settle(entry.node.api.actOnLane({ action, signer: SIGNER, request, actor: "operator:ops" }));
  }

  row(txId: string): TransactionRow {
    const row = this.world.database.state.transactions.get(txId);
    if (row === undefined) throw new Error(`there is no transaction ${txId}`);
    return row;
  }

  async settled(...txIds: readonly string[]): Promise<void> {
    await this.world.until(() => txIds.every((txId) => ["CONFIRMED", "FAILED_FINAL"].includes(this.row(txId).state)));
  }

  /** The transaction's state and sub-state in one line. */
  outcome(txId: string): string {
    const { state, subState } = this.row(txId);
    return subState === null ? state : `${state}/${subState}`;
  }

  kinds(txId: string): readonly string[] {
    return this.row(txId).attempts.map(({ kind }) => kind);
  }

  /** The events of a transaction that an operator or a hook decided, each with the actor and the action. */
  decisions(txId: string): readonly string[] {
    return this.row(txId).history.flatMap(({ event, decision }) =>
      decision === undefined ? [] : [`${event} by ${decision.actor}: ${decision.audit?.action}`],
    );
  }
}

/** Starts two nodes. Returns the owner of the signer's lane, and the other node, which receives the requests. */
export async function startTwo(options: WorldOptions = {}) {
  const world = new World(options);
  const nodes = [await world.startNode(), await world.startNode()];
  await world.until(() => nodes.every(({ node }) => node.gauges().lanesHeld > 0), 30_000);
  const [owner, other] = world.ownerOf(SIGNER) === "node-1" ? nodes : nodes.toReversed();
  return { world, ops: new OperatedWorld(world), owner: owner as WorldNode, other: other as WorldNode };
}
