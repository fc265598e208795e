/**
 * Implements LaneStore.commit: one database transaction for many writes of many lanes.
 *
 * Reads: the lanes (locked), request ids, transactions, intake rows and blocks that the writes are about. Writes: all
 * lane data. Invariants: I1–I5, I8 (ARCHITECTURE.md). A crash here leaves nothing, or all of it: see
 * write-transaction.ts.
 *
 * Every commit is decided from the state of its lanes, and the server verifies that state. Usually the lanes are locked
 * and read first, so that what was read stays true. An allocation needs only the lane's next nonce (its cursor), which
 * this process usually wrote last. So it is decided from the remembered lane and committed in one round trip, together
 * with statements that verify the assumptions. `proveLanes` verifies that the lane is unchanged, a unique index that no
 * request id exists, and `proveUnspent` that no request id belongs to a transaction removed by retention. If one of
 * them fails, nothing is committed, and the lanes are locked and read after all.
 *
 * Writes are checked against the policy document in force. Each lane row carries the document's version mark (its
 * stamp), and the statement that locks the lane returns or compares the stamp. So a change of the document that commits
 * before this commit is obeyed, at no extra cost. If the stamp differs, the document is read and all writes are checked
 * again.
 */
import { inOrder, type Moment } from "../../../domain/ledger/index.ts";
import type { Policies } from "../../../domain/policy/policy.ts";
import { type Committed, type LaneWrite, StoreUnavailable, type WriteOutcome } from "../../../ports/lane-store.ts";
import { type DurableRuntime, durably, durablyAtOnce } from "../session/durably.ts";
import type { Decision } from "../session/write-transaction.ts";
import { proveLanes } from "../statements/lane.ts";
import { commandsOf } from "./commands.ts";
import { type Found, lookupFor, UNWATCH_PAGE } from "./lookup.ts";
import { type Needs, needsOf } from "./needs.ts";
import { type LanePlan, Plan } from "./plan.ts";
import type { PolicyBook } from "./policies.ts";
import type { RememberedLanes } from "./remembered-lanes.ts";

export interface CommitRuntime extends DurableRuntime {
  readonly lanes: RememberedLanes;
  readonly policy: PolicyBook;
}

/**
 * How many times a commit is decided at most: again whenever the policy document changed in the meantime. More changes
 * in a row do not happen in practice.
 */
const MOST_JUDGEMENTS = 5;

export async function commitWrites(runtime: CommitRuntime, writes: readonly LaneWrite[]): Promise<Committed> {
  for (let judged = 1; judged <= MOST_JUDGEMENTS; judged++) {
    const { policy } = runtime;
    const { stamp, policies } = policy.current.stamp === "" ? await policy.read() : policy.current;
    const asked = { writes, needs: writes.map((write) => needsOf(write, policies)), stamp, policies };
    const decided = (await commitAsLeft(runtime, asked)) ?? (await commitAsFound(runtime, asked));
    if (decided !== null) return decided;
    await policy.read();
  }
  throw new StoreUnavailable("the policy document changed during every attempt to commit", { busy: true });
}

interface Asked {
  /** Version mark of the policy document that the writes are checked against. */
  readonly stamp: string;
  readonly policies: Policies | null;
  readonly writes: readonly LaneWrite[];
  /** Rows that each write needs, in the order of `writes`. */
  readonly needs: readonly Needs[];
}

interface Decided {
  readonly plan: Plan;
  readonly outcomes: readonly WriteOutcome[];
}

/**
 * Locks and reads the lanes, then commits. Null if the policy document in force is not the one that the writes were
 * checked against; then nothing is committed.
 */
async function commitAsFound(runtime: CommitRuntime, asked: Asked): Promise<Committed | null> {
  const { find, found: read } = lookupFor(asked.needs);
  const decided = await durably(runtime, {
    waits: 1,
    find,
    decide: (rows, { now, epoch }): Decision<Decided | null> => {
      const found = read(rows);
      const isOther = found.lanes.some(({ policyStamp }) => policyStamp !== asked.stamp);
      if (isOther) return { commands: null, result: null };
      const plan = new Plan(found, { epoch, policies: asked.policies });
      const result = decide(plan, asked, { at: now, past: askedAt(found) ?? now });
      const isFenced = result.outcomes.every(({ status }) => status === "fenced");
      return { commands: isFenced ? null : commandsOf(plan, null), result };
    },
  });
  if (decided === null) return null;
  runtime.lanes.remember(decided.plan.lanes.values());
  return { outcomes: decided.outcomes, changes: decided.plan.changes() };
}

/**
 * Commits in one round trip, based on the lanes' state after this process's last commits. Null if that is not possible;
 * then nothing is committed.
 */
async function commitAsLeft(runtime: CommitRuntime, asked: Asked): Promise<Committed | null> {
  const known = runtime.history.standing;
  if (known === null || !asked.writes.every(isPlainAllocation) || asked.needs.some(isJudged)) return null;
  const rows = asked.writes.map(({ fence }) => runtime.lanes.recall(fence));
  if (!rows.every((row) => row !== null) || rows.some(({ policyStamp }) => policyStamp !== asked.stamp)) return null;
  // A plain allocation can be decided without the server's time, because none of its rules depends on it. Its rows and
  // its result later get the time of the server's transaction.
  const at = runtime.clock.now();
  const plan = new Plan({ lanes: rows }, { epoch: known.epoch, policies: asked.policies });
  const decided = decide(plan, asked, { at, past: at });
  const lanes = [...plan.lanes.values()];
  // Give up the commit in one round trip if one of the lanes would stay unchanged: it allocates no nonces now, or every
  // item repeats another one of the batch.
  if (lanes.some((lane) => lane.left() === lane.row)) return null;
  // Use of a key by another program is stored with its time, so the server's time must be read first.
  if (plan.of("usedElsewhere").length > 0) return null;
  const commandsFor = (marker: string) => [proveLanes(lanes.map(proofRow), marker), ...commandsOf(plan, marker)];
  const committed = await durablyAtOnce(runtime, { known, commandsFor }).catch((error) => {
    runtime.lanes.wasWrong(lanes);
    throw error;
  });
  if (committed === null) {
    runtime.lanes.wasWrong(lanes);
    return null;
  }
  runtime.lanes.wasRight(lanes);
  return datedBy(committed.at, { outcomes: decided.outcomes, changes: plan.changes() });
}

/**
 * Sets the time of the server's transaction in the results of allocations that were decided before that time was known.
 */
function datedBy(at: Date, { outcomes, changes }: Committed): Committed {
  return {
    outcomes: outcomes.map((outcome) => {
      if (outcome.status !== "allocated") return outcome;
      return {
        ...outcome,
        items: outcome.items.map((item) => (item.result === "created" ? { ...item, createdAt: at } : item)),
      };
    }),
    changes: changes.map((lane) => ({
      ...lane,
      changes: lane.changes.map((change) => (change.kind === "allocated" ? { ...change, at } : change)),
    })),
  };
}

function isPlainAllocation(write: LaneWrite) {
  if (write.kind !== "allocate" || (write.fill ?? []).length > 0) return false;
  // An intent with `validUntil` needs a commit in two round trips: the server's clock, which must be read first,
  // decides whether the intent has expired.
  return write.items.every(
    ({ intakeId, mayExist, intent }) => intakeId === undefined && mayExist !== true && intent.validUntil === undefined,
  );
}

/**
 * True if policies apply to the write. Then the used amounts of the limits, the time and the approvals must be read
 * first.
 */
function isJudged({ limits, awaited }: Needs) {
  return limits !== undefined || awaited === true;
}

function proofRow({ row }: LanePlan) {
  const { chainId, signer, ownerInstance: instanceId, token, nextNonce, suspendedBy } = row;
  const { reconciledEpoch, policyStamp } = row;
  const departed = row.departedBelow !== null;
  return { chainId, signer, instanceId, token, nextNonce, suspendedBy, reconciledEpoch, departed, policyStamp };
}

/** Decides each write from the rows of its lane; the resulting changes are in the plan. */
function decide(plan: Plan, { writes, needs }: Asked, moment: Moment): Decided {
  const lanes = plan.load(needs);
  const outcomes: WriteOutcome[] = writes.map(() => ({ status: "fenced" }));
  for (const place of inOrder(writes)) {
    const lane = lanes[place];
    const write = writes[place] as LaneWrite;
    if (lane) outcomes[place] = plan.judge(lane, write, moment);
    const hasMore = lane && write.kind === "unwatch" && plan.pastWatch(lane) >= UNWATCH_PAGE;
    if (hasMore) outcomes[place] = { status: "unfinished" };
  }
  return { plan, outcomes };
}

/**
 * Database time at which reservations were read. It is later than the commit's own time, because they are read after
 * the wait for locks.
 */
function askedAt({ reservations = [], openReservations = [] }: Found) {
  return [...reservations, ...openReservations].at(-1)?.askedAt ?? null;
}
