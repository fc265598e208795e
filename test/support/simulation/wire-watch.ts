import type { NotStarted, SubmitResult } from "../../../src/domain/chain/answers.ts";
import type { Address, Hash } from "../../../src/domain/lane.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import type { TransactionRow } from "../../doubles/memory-store/state.ts";
import type { World, WorldNode } from "../world.ts";

/** What one node knows of one transaction, by what went over its wires. */
interface Known {
  /** When a new term of the lane last began: answers to sends before it are dropped. */
  resumedMs: number;
  /** When the node last had to look for a receipt before it sends; null: it need not. */
  owedAtMs: number | null;
  /** When a send that has no answer yet began; null: none is under way. */
  sendingSinceMs: number | null;
  /** When an endpoint that signs may have signed without saying the hash, and the attempt; null: it did not. */
  lost: { readonly atMs: number; readonly attempts: number } | null;
}

/** An endpoint's answer to a send, and when the send began. */
interface Answer {
  readonly answer: (SubmitResult | NotStarted)["answer"];
  readonly beganMs: number;
}

/**
 * Checks at the wires of each node what is promised of any send, whatever happens: one claim for each, never two of a
 * transaction at once, a look for the receipt before bytes that may be mined are sent again, and nothing sent again while
 * an endpoint may have signed it under an unknown hash.
 */
export class WireWatch {
  readonly violations: string[] = [];
  private readonly world: World;
  private readonly started = new Map<string, number>();
  private rolledBackMs = Number.NEGATIVE_INFINITY;

  constructor(world: World) {
    this.world = world;
    world.chain.subscribe(({ type }) => {
      if (type === "rollback") this.rolledBackMs = this.nowMs;
    });
  }

  private get nowMs(): number {
    return this.world.clock.monotonicMs();
  }

  /** Follows all sends of a node. The returned function takes its events. */
  follow({ rpc }: Pick<WorldNode, "rpc">): (event: TelemetryEvent) => void {
    const known = new Map<string, Known>();
    const of = (txId: string) => {
      const before = known.get(txId) ?? { resumedMs: 0, owedAtMs: null, sendingSinceMs: null, lost: null };
      known.set(txId, before);
      return before;
    };
    const [submit, sendUnsigned, receipts] = [rpc.submit.bind(rpc), rpc.sendUnsigned.bind(rpc), rpc.receipts.bind(rpc)];
    const watched: typeof rpc.submit = async (sends) => {
      const beganMs = this.nowMs;
      const rows = sends.map(({ raw }) => this.rowOf(({ rawTransaction }) => rawTransaction === raw));
      const permitted = sends.map((send, index) => ({
        ...send,
        mayLeave: this.counted(rows[index], of, send.mayLeave),
      }));
      const results = await submit(permitted);
      for (const [index, result] of results.entries()) this.answered(rows[index], of, { ...result, beganMs });
      return results;
    };
    const watchedUnsigned: typeof rpc.sendUnsigned = async (from, transaction, mayLeave, ...rest) => {
      const beganMs = this.nowMs;
      const row = this.rowAt(from, transaction.nonce);
      const result = await sendUnsigned(from, transaction, this.counted(row, of, mayLeave), ...rest);
      this.answered(row, of, { ...result, beganMs });
      const isOfTerm = row !== undefined && of(row.txId).resumedMs <= beganMs;
      if (isOfTerm && "txHash" in result && result.txHash === null) this.unnamed(row, of(row.txId), result);
      return result;
    };
    const watchedReceipts: typeof rpc.receipts = async (hashes) => {
      const found = await receipts(hashes);
      for (const hash of hashes) this.looked(hash, of);
      return found;
    };
    Object.assign(rpc, { submit: watched, sendUnsigned: watchedUnsigned, receipts: watchedReceipts });
    return (event) => {
      if (event.type === "lane.resumed") this.resumed(event.lane.signer, of);
    };
  }

  private rowOf(matches: (attempt: TransactionRow["attempts"][number]) => boolean): TransactionRow | undefined {
    for (const row of this.world.database.state.transactions.values()) if (row.attempts.some(matches)) return row;
    return undefined;
  }

  private rowAt(signer: Address, nonce: number): TransactionRow | undefined {
    return this.world.rows().find((row) => row.lane.signer === signer && row.nonce === nonce);
  }

  /** The permission to send, with a look at each use of it. */
  private counted(row: TransactionRow | undefined, of: (txId: string) => Known, mayLeave: () => boolean) {
    return () => {
      const may = mayLeave();
      if (may && row !== undefined) this.leaves(row, of(row.txId));
      return may;
    };
  }

  private leaves(row: TransactionRow, known: Known): void {
    const { txId, nonce } = row;
    const times = (this.started.get(txId) ?? 0) + 1;
    this.started.set(txId, times);
    const { submitAttempts } = this.world.database.state.transactions.get(txId) ?? row;
    if (times > submitAttempts) this.says(`nonce ${nonce} was sent ${times} times under ${submitAttempts} claims`);
    if (known.sendingSinceMs !== null) this.says(`nonce ${nonce} was sent twice at once`);
    const mayBeMined = known.owedAtMs !== null && known.owedAtMs > this.rolledBackMs;
    if (mayBeMined) this.says(`nonce ${nonce} was sent without a look for its receipt since ${known.owedAtMs} ms`);
    const { lost } = known;
    const isUnnamed = row.attempts.some(({ txHash, foreign }) => txHash === null && foreign !== true);
    const isAgain = lost !== null && isUnnamed && lost.attempts === row.attempts.length;
    const sinceMs = this.nowMs - (lost?.atMs ?? 0);
    if (isAgain && sinceMs < this.world.settings.grayZoneTimeoutMs && (lost?.atMs ?? 0) > this.rolledBackMs)
      this.says(`nonce ${nonce} was sent again ${sinceMs} ms after nobody knew if it was signed`);
    known.sendingSinceMs = this.nowMs;
  }

  private answered(row: TransactionRow | undefined, of: (txId: string) => Known, { answer, beganMs }: Answer): void {
    if (row === undefined || answer === "notStarted") return;
    const known = of(row.txId);
    if (beganMs < known.resumedMs) return;
    known.sendingSinceMs = null;
    if (answer === "nonceConsumed") known.owedAtMs ??= this.nowMs;
  }

  private unnamed({ attempts }: TransactionRow, known: Known, { answer }: SubmitResult): void {
    const isMade =
      answer === "accepted" || answer === "alreadyKnown" || answer === "nonceConsumed" || answer === "unknown";
    known.lost = isMade ? { atMs: this.nowMs, attempts: attempts.length } : null;
  }

  private looked(hash: Hash, of: (txId: string) => Known): void {
    const row = this.rowOf(({ txHash }) => txHash === hash);
    if (row !== undefined) of(row.txId).owedAtMs = null;
  }

  /** A new term knows nothing: all that may be mined is looked for first. What is still out belongs to the old term. */
  private resumed(signer: Address, of: (txId: string) => Known): void {
    for (const { lane, txId, state, receipt, attempts } of this.world.database.state.transactions.values()) {
      if (lane.signer !== signer) continue;
      const known = of(txId);
      const isOpen = state === "TRACKING" || state === "STUCK";
      const isNamed = attempts.some(({ txHash }) => txHash !== null);
      known.owedAtMs = isOpen && receipt === null && isNamed ? this.nowMs : null;
      known.sendingSinceMs = null;
      known.lost = null;
      known.resumedMs = this.nowMs;
    }
  }

  private says(what: string): void {
    this.violations.push(`${what} (at ${this.nowMs} ms)`);
  }
}
