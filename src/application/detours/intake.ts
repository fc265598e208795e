/**
 * Detour into stage 1: intents that a caller wrote inside its own database transaction. They become visible when that
 * transaction commits. The lane's owner processes every visible intent that has no nonce yet. It does not remember the
 * last id that it has read, because a lower id may commit later. An intent was accepted when its caller committed, so
 * one endpoint's refusal ends it only if the others confirm the refusal.
 *
 * Reads: the intake table; for a refusal, every endpoint. Writes: through stage 2, or the refusal of an intent that can
 * never be allocated. Invariants: I4, I5, I7. A crash leaves the intake row as it was, or consumed together with the
 * allocation; never both, never neither.
 */
import { judgeRefusal, stillUnconfirmed } from "../../domain/chain/unconfirmed-refusal.ts";
import { FencepostError, forbiddenBy } from "../../domain/errors.ts";
import { grouped } from "../../domain/grouped.ts";
import { spentRequestId } from "../../domain/keys/principal.ts";
import { laneKey } from "../../domain/lane.ts";
import { expired, isSpent, lapsed } from "../../domain/ledger/index.ts";
import { problemFrom } from "../../domain/text/refusal.ts";
import { unlessSilent } from "../../ports/chain.ts";
import type { AllocateResult, IntakeResult, IntakeRow, NewTransaction } from "../../ports/lane-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { LaneWork, WorkPorts } from "../chain/work-ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { TermOver } from "../lane/term.ts";
import { answerOwned, answerWith, type Result, unstorable } from "../stages/1-create/answer-existing.ts";
import { isRefusedBy, prepare, questionOf } from "../stages/1-create/prepare.ts";
import { allocate } from "../stages/2-allocate/allocate.ts";

const AT_ONCE = 200;
/**
 * Time in ms without new intake rows and hints after which the intake table is read less often. Before that, it is read
 * on every beat.
 */
const QUIET_AFTER_MS = 10_000;
/**
 * Number of beats between two reads of the intake table while no rows arrive. While hints are received, these reads
 * only cover lost hints. A hint is sent before the caller's transaction commits.
 */
const QUIET_BEATS = { listening: 10, polling: 3 };

interface IntakeEvents {
  /** Called if there may be unread intake rows: a lane has read a full page, or a hint announced one. */
  readonly onMore: () => void;
  readonly onFailed: (error: unknown) => void;
  /** Called when an intake row was allocated a nonce or refused, and the row's sender still waits for the answer. */
  readonly onTaken: () => void;
}

/**
 * Processes visible intake rows, each lane independently and one page at a time: a lane that waits for its chain, or
 * has thousands of rows, must not delay other lanes.
 */
export class Intake {
  private readonly ports: WorkPorts;
  private readonly events: IntakeEvents;
  private readonly underWay = new Set<Promise<void>>();
  /** Monotonic time of the last intake row or hint; null if there was none yet. */
  private lastNewsMs: number | null = null;

  constructor(ports: WorkPorts, events: IntakeEvents) {
    this.ports = ports;
    this.events = events;
  }

  /** True if the intake table should be read on this beat. `isListening`: this process receives hints from others. */
  isDue(beat: number, isListening: boolean): boolean {
    const { lastNewsMs } = this;
    const isQuiet = lastNewsMs === null || this.ports.clock.monotonicMs() - lastNewsMs > QUIET_AFTER_MS;
    return !isQuiet || beat % (isListening ? QUIET_BEATS.listening : QUIET_BEATS.polling) === 0;
  }

  /** Records that intake rows are arriving: for a while the table is read on every beat. */
  noteNews(): void {
    this.lastNewsMs = this.ports.clock.monotonicMs();
  }

  /**
   * Called when an intake row was written and its database transaction has committed or is about to: the table is read
   * now, and on every beat for a while.
   */
  expectRows(): void {
    this.noteNews();
    this.events.onMore();
  }

  /** Begins to process the visible rows; lanes that are still busy with an earlier read are skipped. */
  async look(lanes: () => readonly OwnedLane[]): Promise<void> {
    const all = lanes();
    let open = all.filter(({ intakeLooks }) => intakeLooks === 0);
    for (const lane of all) if (lane.intakeLooks > 0) lane.count("intake", 1);
    while (open.length > 0) {
      // Leave out intents that one endpoint refuses while the others do not confirm the refusal. They are checked again
      // at a later block, and meanwhile block no other intent.
      const resting = open.flatMap((lane) => lane.refusals.restingAt(this.headOf(lane)));
      const lanesOpen = open.map(({ lane }) => lane);
      const rows = await this.ports.store.loadIntake(lanesOpen, AT_ONCE, resting);
      if (rows.length + resting.length > 0) this.noteNews();
      const byLane = grouped(rows, ({ intent }) => laneKey(intent.lane));
      const isFull = rows.length === AT_ONCE;
      for (const lane of open) {
        const own = byLane.get(lane.key);
        if (own !== undefined) this.begin(lane, own, isFull);
      }
      // A full page may contain no row of some lanes although those lanes have rows: read again for them.
      open = isFull ? open.filter(({ key }) => !byLane.has(key)) : [];
    }
  }

  private headOf({ lane }: OwnedLane) {
    return this.ports.chains.get(lane.chainId)?.follower.head?.number ?? 0;
  }

  /** Resolves when all work under way has ended. */
  async settled(): Promise<void> {
    await Promise.all(this.underWay);
  }

  private begin(lane: OwnedLane, rows: readonly IntakeRow[], isFull: boolean) {
    lane.count("intake", 1);
    const taking = this.take(lane, rows, isFull).finally(() => this.underWay.delete(taking));
    this.underWay.add(taking);
  }

  private async take(lane: OwnedLane, rows: readonly IntakeRow[], isFull: boolean) {
    let hasMore = false;
    try {
      hasMore = (await takeLane(this.ports, lane, rows)) && isFull;
    } catch (error) {
      // An intent that can get no nonce now, because the chain or the database does not answer or this node lost the
      // lane, waits for the next read.
      const waits = error instanceof TermOver || (error instanceof FencepostError && error.code === "UNAVAILABLE");
      if (!waits) this.events.onFailed(error);
    }
    const wasPassedOver = lane.intakeLooks > 1;
    lane.count("intake", -lane.intakeLooks);
    if (rows.some(({ unanswered }) => unanswered)) this.events.onTaken();
    if (wasPassedOver || hasMore) this.events.onMore();
  }
}

/**
 * Processes rows in call order. If the chain cannot prepare an intent now, the lane's later intents wait, too, so that
 * none overtakes it. Two kinds of intents do not stop the later ones: those that waited for approval (already
 * overtaken), and those that only a single endpoint refuses. Returns false if an intent has to wait for the chain.
 */
async function takeLane(ports: WorkPorts, lane: OwnedLane, rows: readonly IntakeRow[]) {
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  const work = { ports, context, lane };
  const prepared: NewTransaction[] = [];
  const results: IntakeResult[] = [];
  let waits = false;
  for (const row of answeredFirst(rows)) {
    const over = overResult(row);
    if (over !== null) {
      results.push(over);
      continue;
    }
    // An intent that was refused before is checked again as if it were the first of its lane: no transaction was
    // pending when it was refused, and transactions sent since then come after it.
    const isFirst = lane.refusals.of(row.intakeId) !== null;
    const behindPending = !isFirst && (prepared.length > 0 || lane.hasUnmined());
    const result = await lane.term.during(prepareRow(work, row, behindPending));
    if (result === "unconfirmed") continue;
    if (typeof result === "string") {
      waits = true;
      if (result === "dependsOnPending" && row.approved === true) continue;
      break;
    }
    if ("result" in result) results.push(result);
    else prepared.push(result);
  }
  if (prepared.length > 0) {
    const outcome = await allocate(ports, context, lane, prepared);
    results.push(...outcome.flatMap((became, index) => duplicateResult(became, prepared[index] as NewTransaction)));
  }
  if (results.length > 0) {
    await lane.term.write({ kind: "settleIntake", results });
    ports.feedGrew();
  }
  return !waits;
}

/**
 * Orders intents with the same request id: the first becomes the transaction, the others are aliases of it. An intent
 * whose caller has received its id comes first, so that the caller finds the transaction by that id. Senders that still
 * wait have received no id.
 */
function answeredFirst(rows: readonly IntakeRow[]) {
  const answered = new Map<string, IntakeRow>();
  for (const row of rows) {
    const { requestId } = row.intent;
    if (requestId !== null && row.unanswered !== true && !answered.has(requestId)) answered.set(requestId, row);
  }
  const inOrder = new Set<IntakeRow>();
  for (const row of rows) inOrder.add(answered.get(row.intent.requestId ?? "") ?? row).add(row);
  return [...inOrder];
}

/** Result of an intent whose approval has expired or whose deadline has passed. Decided without calling the chain. */
function overResult({ intakeId, intent, expired: unapproved, lapsed: isOver }: IntakeRow) {
  const waiting = { intakeId, requestId: intent.requestId };
  if (unapproved !== undefined) return expired(waiting, unapproved);
  return isOver === true && intent.validUntil !== undefined ? lapsed(waiting, intent.validUntil) : null;
}

type PreparedRow = NewTransaction | IntakeResult | "unavailable" | "dependsOnPending" | "unconfirmed";

async function prepareRow(work: LaneWork, row: IntakeRow, behindPending: boolean): Promise<PreparedRow> {
  const { context, lane } = work;
  const { intakeId, intent } = row;
  try {
    const prepared = await prepare(context, intent, { behindPending, laneKnown: lane.cursor !== null });
    lane.refusals.forget(intakeId);
    return { intakeId, intent: prepared };
  } catch (error) {
    if (!(error instanceof FencepostError)) throw error;
    if (error.code === "UNAVAILABLE") return "unavailable";
    const depends = error.extras.dependsOnPending === true;
    // A sender that still waits gets this refusal and decides what to do. If the caller was already told that the
    // intent is accepted, the intent waits instead.
    if (depends && row.unanswered !== true) return "dependsOnPending";
    const existing = await existingResult(work, row);
    if (existing !== null) return existing;
    // For a sender that still waits, one endpoint's refusal is enough: nothing was accepted yet.
    if (row.unanswered === true) return { ...refusal(intakeId, error), ifUnanswered: true };
    return (await confirmRefusal(work, row, error.message)) ? refusal(intakeId, error) : "unconfirmed";
  }
}

function refusal(intakeId: number, error: FencepostError): Extract<IntakeResult, { result: "refused" }> {
  const { rule } = error.extras;
  const reason = rule === undefined ? error.message : `${error.message} (${rule})`;
  return { intakeId, result: "refused", event: "refuse", reason, problem: problemFrom(error) };
}

/** Looks up the request id once more before any refusal: an existing transaction takes precedence. */
async function existingResult({ ports }: LaneWork, { intakeId, intent }: IntakeRow) {
  if (intent.requestId === null) return null;
  const found = await ports.store.findByRequestIds([{ lane: intent.lane, requestIds: [intent.requestId] }]);
  const other = found.find((each) => isSpent(each) || (each.txId !== intent.txId && each.state !== "CREATED"));
  return other === undefined ? null : resultBeside(intakeId, answerOwned(other, intent));
}

function duplicateResult(result: AllocateResult, { intakeId, intent }: NewTransaction) {
  if (intakeId === undefined) return [];
  if (result.result === "duplicate")
    return [resultBeside(intakeId, answerWith(result.existing, intent, result.samePayload))];
  if (result.result === "spent") return [resultBeside(intakeId, spentRequestId(intent.requestId))];
  // The intent's `validUntil` passed just after the row was read.
  if (result.result === "expired" && intent.validUntil !== undefined)
    return [lapsed({ intakeId, requestId: intent.requestId }, intent.validUntil)];
  if (result.result === "forbidden") return [refusal(intakeId, forbiddenBy(result))];
  if (result.result !== "refused") return [];
  return [{ ...refusal(intakeId, unstorable()), reason: `the database cannot store ${intent.txId}` }];
}

/**
 * Result of an intent whose request id already has a transaction. `answer`: the result that a create with this request
 * id would get.
 */
function resultBeside(intakeId: number, answer: Result): IntakeResult {
  if (!(answer instanceof FencepostError)) return { intakeId, result: "alias", of: answer.txId };
  return { ...refusal(intakeId, answer), event: "refuseReusedRequestId" };
}

/**
 * Queries every endpoint that is up, and checks each answer by the rules of a create
 * (domain/chain/unconfirmed-refusal.ts). True if the refusal is confirmed and the intent may end; false if it waits and
 * is checked again at a later block. The answers are kept in memory only: a new owner starts over.
 */
async function confirmRefusal({ ports, context, lane }: LaneWork, { intakeId, intent }: IntakeRow, reason: string) {
  const { txId } = intent;
  const block = context.follower.head?.number ?? 0;
  const answers = await unlessSilent(context.chain.prospects(questionOf(context, intent)), []);
  const words = answers.map((response) => {
    if (response.kind === "silent") return "silent";
    if (response.answer.head.number < block) return "behind";
    return isRefusedBy(context, intent, response.answer) ? "refuses" : "accepts";
  });
  const seen = lane.refusals.of(intakeId);
  const waitsFor = judgeRefusal(words, block, seen);
  if (waitsFor === "confirmed") return true;
  // One alert per lane: an endpoint that is wrong about one transaction is wrong about many.
  if (waitsFor === "agreement" && !lane.refusals.all.some((each) => each.waitsFor === waitsFor)) {
    const message = `one endpoint of chain ${lane.lane.chainId} refuses ${txId}, which was accepted, and another does not: it waits until they agree (${reason})`;
    ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "RPC_DISAGREES", message, lane: lane.lane, txId });
  }
  lane.refusals.note(intakeId, stillUnconfirmed(seen, { txId, reason, waitsFor, since: ports.clock.now(), block }));
  return false;
}
