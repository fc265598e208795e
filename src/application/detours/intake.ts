/**
 * Detour into stage 1: intents that a caller wrote inside its own database transaction. They become visible when that
 * commits, and the lane's owner takes up whatever is visible and not yet allocated; never by an id cursor, because a
 * lower id may commit later. An intent was accepted when its caller committed: one endpoint's refusal ends it only if the others
 * confirm the refusal.
 *
 * Reads: the intake table; for a refusal, every endpoint. Writes: through stage 2, or the refusal of what can never be allocated.
 * Invariants: I4, I5, I7. A crash leaves the intake row as it was, or consumed together with the allocation; never both, never neither.
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
/** While rows arrive, or a hint says that one will, they are looked for on every beat; later, less often. */
const QUIET_AFTER_MS = 10_000;
/**
 * The hint about a caller's row arrives before its transaction commits. With hints working, polling only covers lost
 * ones.
 */
const QUIET_BEATS = { listening: 10, polling: 3 };

interface IntakeEvents {
  /** There may be rows that no read has found: a lane has taken a full page, or a hint says so. */
  readonly onMore: () => void;
  readonly onFailed: (error: unknown) => void;
  /** A row whose sender waits for the answer was taken or declined. */
  readonly onTaken: () => void;
}

/**
 * Takes up what is visible, each lane in its own time and one page of it at once. A lane that waits for its chain, or has
 * thousands of rows, must not keep other lanes waiting.
 */
export class Intake {
  private readonly ports: WorkPorts;
  private readonly events: IntakeEvents;
  private readonly underWay = new Set<Promise<void>>();
  /** Monotonic; null: there was none yet. */
  private lastNewsMs: number | null = null;

  constructor(ports: WorkPorts, events: IntakeEvents) {
    this.ports = ports;
    this.events = events;
  }

  /** `isListening`: other processes can send hints to this one. */
  isDue(beat: number, isListening: boolean): boolean {
    const { lastNewsMs } = this;
    const isQuiet = lastNewsMs === null || this.ports.clock.monotonicMs() - lastNewsMs > QUIET_AFTER_MS;
    return !isQuiet || beat % (isListening ? QUIET_BEATS.listening : QUIET_BEATS.polling) === 0;
  }

  /** Others leave things here at this time: more is looked for on every beat for a while. */
  noteNews(): void {
    this.lastNewsMs = this.ports.clock.monotonicMs();
  }

  /** A row was written, and is or will be committed: read now, and on every beat for a while. */
  expectRows(): void {
    this.noteNews();
    this.events.onMore();
  }

  /** Begins with what is there; those that are busy with an earlier look are passed over. */
  async look(lanes: () => readonly OwnedLane[]): Promise<void> {
    const all = lanes();
    let open = all.filter(({ intakeLooks }) => intakeLooks === 0);
    for (const lane of all) if (lane.intakeLooks > 0) lane.count("intake", 1);
    while (open.length > 0) {
      // A transaction that one endpoint refuses, and no other has confirmed, blocks nothing while it waits for a later
      // block.
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
      // A full page may hide rows of those that have none on it.
      open = isFull ? open.filter(({ key }) => !byLane.has(key)) : [];
    }
  }

  private headOf({ lane }: OwnedLane) {
    return this.ports.chains.get(lane.chainId)?.follower.head?.number ?? 0;
  }

  /** Resolves when everything that was begun has ended. */
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
      // An intent that can get no nonce now, because of the chain, the database or the lane's term, waits for the next
      // read.
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
 * In call order. An intent that the chain cannot prepare now stops the rest of the lane, so that nothing overtakes it.
 * One that waited for approval was overtaken anyway, and does not stop the others. Nor does one that a single endpoint
 * refuses: its end would have let the others pass. True if every other row was taken.
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
    // It was refused with nothing before it: those that are sent meanwhile come after it.
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
 * Orders intents with the same request id: the first becomes the transaction, the others are names of it. An intent
 * whose caller received its id comes first, so that the caller finds the transaction by that id. Senders that still
 * wait have received none.
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

/** Its approval expired, or its deadline passed. It ends before the chain is asked about it. */
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
    // A waiting sender gets that answer, and decides itself; a caller that was answered "accepted" does not.
    if (depends && row.unanswered !== true) return "dependsOnPending";
    const existing = await existingResult(work, row);
    if (existing !== null) return existing;
    // One endpoint's word is enough for a sender that waits: nothing was accepted yet.
    if (row.unanswered === true) return { ...refusal(intakeId, error), ifUnanswered: true };
    return (await confirmRefusal(work, row, error.message)) ? refusal(intakeId, error) : "unconfirmed";
  }
}

function refusal(intakeId: number, error: FencepostError): Extract<IntakeResult, { result: "refused" }> {
  const { rule } = error.extras;
  const reason = rule === undefined ? error.message : `${error.message} (${rule})`;
  return { intakeId, result: "refused", event: "refuse", reason, problem: problemFrom(error) };
}

/** Before any refusal the request id is looked up once more: an existing transaction wins. */
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
  // The `validUntil` was over a moment after the row was read.
  if (result.result === "expired" && intent.validUntil !== undefined)
    return [lapsed({ intakeId, requestId: intent.requestId }, intent.validUntil)];
  if (result.result === "forbidden") return [refusal(intakeId, forbiddenBy(result))];
  if (result.result !== "refused") return [];
  return [{ ...refusal(intakeId, unstorable()), reason: `the database cannot store ${intent.txId}` }];
}

/** `answer`: as a create with the same request id is answered. */
function resultBeside(intakeId: number, answer: Result): IntakeResult {
  if (!(answer instanceof FencepostError)) return { intakeId, result: "alias", of: answer.txId };
  return { ...refusal(intakeId, answer), event: "refuseReusedRequestId" };
}

/**
 * Asks every endpoint that is up, and judges each answer by the rules of a create (domain/chain/unconfirmed-refusal.ts). True: the
 * intent may end. False: it waits, and is looked at again at a later block. What was seen is kept in memory: a new owner begins again.
 */
async function confirmRefusal({ ports, context, lane }: LaneWork, { intakeId, intent }: IntakeRow, reason: string) {
  const { txId } = intent;
  const block = context.follower.head?.number ?? 0;
  const answers = await unlessSilent(context.chain.prospects(questionOf(context, intent)), []);
  const words = answers.map((heard) => {
    if (heard.kind === "silent") return "silent";
    if (heard.answer.head.number < block) return "behind";
    return isRefusedBy(context, intent, heard.answer) ? "refuses" : "accepts";
  });
  const seen = lane.refusals.of(intakeId);
  const waitsFor = judgeRefusal(words, block, seen);
  if (waitsFor === "confirmed") return true;
  // One alert for the whole lane: an endpoint that is wrong about one transaction is wrong about many.
  if (waitsFor === "agreement" && !lane.refusals.all.some((each) => each.waitsFor === waitsFor)) {
    const message = `one endpoint of chain ${lane.lane.chainId} refuses ${txId}, which was accepted, and another does not: it waits until they agree (${reason})`;
    ports.telemetry.emit({ type: "alert", severity: "ERROR", code: "RPC_DISAGREES", message, lane: lane.lane, txId });
  }
  lane.refusals.note(intakeId, stillUnconfirmed(seen, { txId, reason, waitsFor, since: ports.clock.now(), block }));
  return false;
}
