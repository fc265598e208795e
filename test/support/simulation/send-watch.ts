import { isStarted, isTaken, type NotStarted, type SubmitResult } from "../../../src/domain/chain/answers.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import type { Chain, MayLeave } from "../../../src/ports/chain.ts";
import type { Applied } from "../../doubles/memory-store/commit.ts";
import { hashKey, type TransactionRow } from "../../doubles/memory-store/state.ts";
import type { WitnessEntry } from "../../doubles/simulated-chain/core.ts";
import { CHAIN_ID, type World, type WorldNode } from "../world.ts";

/** Most calls with the same bytes that a node begins within a second. */
const MOST_A_SECOND = 10;
const A_SECOND_MS = 1_000;
/** Least time between a send that a node took and the next one of the same bytes, in ms. */
const AT_ONCE_MS = 300;
const SENT_AGAIN: readonly string[] = ["withdraw", "reorg", "hold", "unhold"];
const REPLACING: readonly string[] = ["cancel", "replace", "placeholder"];

/**
 * Checks the sends of each node against the database: bytes of a mined transaction stay here, and so do those that
 * another payload has replaced. Nothing is signed anew while it is being sent. No node tries in vain without a pause.
 */
export class SendWatch {
  readonly violations: string[] = [];
  private readonly world: World;
  /** When each node began to send the same bytes within the last second. */
  private readonly begun = new Map<WorldNode, Map<Hex, number[]>>();
  /** When a node took the bytes, by the sender. */
  private readonly taken = new Map<WorldNode, Map<Hex, number>>();
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
    this.begun.set(node, begun);
    this.underWay.set(node, underWay);
    const watched: Chain["submit"] = async (sends, ...how) => {
      for (const { raw, mayLeave } of sends) {
        this.countCall(node, begun, raw);
        underWay.set(raw, mayLeave);
      }
      try {
        const answers = await (submit as Chain["submit"])(sends, ...how);
        for (const [at, { raw }] of sends.entries()) this.answered(node, raw, answers[at]);
        return answers;
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

  private countCall(node: WorldNode, begun: Map<Hex, number[]>, raw: Hex): void {
    const nowMs = this.world.clock.monotonicMs();
    const takenAtMs = this.taken.get(node)?.get(raw) ?? Number.NEGATIVE_INFINITY;
    if (nowMs - takenAtMs < AT_ONCE_MS && !this.isWantedAgain(raw))
      this.violations.push(`${node.url} sent bytes again ${nowMs - takenAtMs} ms after a node took them`);
    const recent = (begun.get(raw) ?? []).filter((atMs) => nowMs - atMs < A_SECOND_MS);
    recent.push(nowMs);
    begun.set(raw, recent);
    if (recent.length === MOST_A_SECOND + 1)
      this.violations.push(`${node.url} began to send the same bytes ${recent.length} times within a second`);
  }

  private answered(node: WorldNode, raw: Hex, result: SubmitResult | NotStarted | undefined): void {
    const isTakenNow = result !== undefined && isStarted(result) && isTaken(result.answer);
    const taken = this.taken.get(node) ?? new Map<Hex, number>();
    this.taken.set(node, taken);
    if (isTakenNow) taken.set(raw, this.world.clock.monotonicMs());
    else taken.delete(raw);
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

  /** True if an operator or a reorg may want these bytes sent at once, or a chain that keeps no future nonces. */
  private isWantedAgain(raw: Hex): boolean {
    if (this.world.chain.options.pool.futureNonces !== "queue") return true;
    const row = this.world.rows().find(({ attempts }) => attempts.some((each) => each.rawTransaction === raw));
    return row?.history.some(({ event, decision }) => decision !== null || SENT_AGAIN.includes(event)) !== false;
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
