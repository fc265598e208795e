import type { Hex } from "../../../src/domain/lane.ts";
import type { Chain, MayLeave } from "../../../src/ports/chain.ts";
import type { Applied } from "../../doubles/memory-store/commit.ts";
import { hashKey, type TransactionRow } from "../../doubles/memory-store/state.ts";
import type { WitnessEntry } from "../../doubles/simulated-chain/core.ts";
import { CHAIN_ID, type World, type WorldNode } from "../world.ts";

/** Most calls with the same bytes that a node begins within a second. */
const MOST_A_SECOND = 10;
const A_SECOND_MS = 1_000;
const REPLACING: readonly string[] = ["cancel", "replace", "placeholder"];

/**
 * Checks the sends of each node against the database: bytes of a mined transaction stay here, and so do those that
 * another payload has replaced. Nothing is signed anew while it is being sent. No node tries in vain without a pause.
 */
export class SendWatch {
  readonly violations: string[] = [];
  private readonly world: World;
  /** Bytes whose send is under way, by node, with the permission to send them. */
  private readonly underWay = new Map<WorldNode, Map<Hex, MayLeave>>();

  constructor(world: World) {
    this.world = world;
    world.database.state.watchers.push((applied) => {
      for (const each of applied) this.committed(each);
    });
  }

  follow(node: WorldNode): void {
    const submit = node.rpc.submit.bind(node.rpc);
    const begun = new Map<Hex, number[]>();
    const underWay = new Map<Hex, MayLeave>();
    this.underWay.set(node, underWay);
    const watched: Chain["submit"] = async (sends, ...how) => {
      for (const { raw, mayLeave } of sends) {
        this.countCall(node, begun, raw);
        underWay.set(raw, mayLeave);
      }
      try {
        return await (submit as Chain["submit"])(sends, ...how);
      } finally {
        for (const { raw } of sends) underWay.delete(raw);
      }
    };
    Object.assign(node.rpc, { submit: watched });
  }

  /** Looks at bytes that arrive at the chain. */
  look({ hash }: WitnessEntry, sender: WorldNode): void {
    const row = hash === null ? null : this.rowOf(hash);
    if (row === null || !this.isOwner(sender, row)) return;
    if (row.receipt !== null) this.violations.push(`${hash} was sent although ${row.txId} is mined`);
    const ordinal = row.attempts.find(({ txHash }) => txHash === hash)?.ordinal ?? 0;
    const newer = row.attempts.find((each) => each.ordinal > ordinal && REPLACING.includes(each.kind));
    if (newer !== undefined) this.violations.push(`${hash} was sent although a ${newer.kind} took its place`);
  }

  /** `begun`: when this node began to send the same bytes within the last second. */
  private countCall(node: WorldNode, begun: Map<Hex, number[]>, raw: Hex): void {
    const nowMs = this.world.clock.monotonicMs();
    const recent = (begun.get(raw) ?? []).filter((atMs) => nowMs - atMs < A_SECOND_MS);
    recent.push(nowMs);
    begun.set(raw, recent);
    if (recent.length === MOST_A_SECOND + 1)
      this.violations.push(`${node.url} began to send the same bytes ${recent.length} times within a second`);
  }

  private committed({ write }: Applied): void {
    if (write.kind !== "transition") return;
    const owner = this.ownerOf(write.fence.instanceId);
    const sending = owner === undefined ? undefined : this.underWay.get(owner);
    if (sending === undefined || sending.size === 0) return;
    for (const { txId, attempt } of write.items) {
      if (attempt === undefined || attempt.ordinal === 1) continue;
      const row = this.world.database.state.transactions.get(txId);
      const isBeingSent = (raw: Hex | null) => raw !== null && sending.get(raw)?.() === true;
      const sent = row?.attempts.find((each) => each.ordinal < attempt.ordinal && isBeingSent(each.rawTransaction));
      if (sent !== undefined && attempt.kind !== "external")
        this.violations.push(`${txId} got another payload (${attempt.kind}) while ${sent.txHash} was being sent`);
    }
  }

  private rowOf(hash: Hex): TransactionRow | null {
    const { state } = this.world.database;
    const known = state.hashes.get(hashKey(CHAIN_ID, hash));
    return known === undefined ? null : (state.transactions.get(known.txId) ?? null);
  }

  private isOwner(node: WorldNode, { lane }: TransactionRow): boolean {
    return this.ownerOf(this.world.database.state.lane(lane)?.owner ?? null) === node;
  }

  private ownerOf(instanceId: string | null): WorldNode | undefined {
    const url = instanceId === null ? undefined : this.world.database.state.instances.get(instanceId)?.url;
    return url === undefined ? undefined : this.world.nodes.find((node) => node.url === url);
  }
}
