/**
 * Detour into stage 1: intents that a caller wrote inside its own database transaction. They become visible when that
 * commits, and the lane's owner takes up whatever is visible and not yet allocated; never by an id cursor, because a
 * lower id may commit later.
 *
 * Reads: the intake table. Writes: through stage 2, or the refusal of what can never be allocated. Invariants: I4, I5.
 * A crash leaves the intake row as it was, or consumed together with the allocation; never both, never neither.
 */
import { FencepostError } from "../../domain/errors.ts";
import { type LaneKey, laneKey } from "../../domain/lane.ts";
import type { AllocateFate, IntakeFate, IntakeRow, LaneStore, NewTransaction } from "../../ports/lane-store.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { prepare } from "../stages/1-create/prepare.ts";
import { type AllocatePorts, allocate } from "../stages/2-allocate/allocate.ts";

export interface IntakePorts extends AllocatePorts {
  readonly store: Pick<LaneStore, "loadIntake" | "findByRequestIds">;
  readonly chains: ReadonlyMap<number, ChainContext>;
  readonly feedGrew: () => void;
}

const AT_ONCE = 200;

/**
 * Takes up what is visible for these lanes, and returns those that may have more. A lane that has to wait is not among
 * them: its rows must not fill the page for ever while others wait behind them.
 */
export async function takeIntake(ports: IntakePorts, lanes: readonly OwnedLane[]): Promise<readonly OwnedLane[]> {
  const rows = await ports.store.loadIntake(
    lanes.map(({ lane }) => lane),
    AT_ONCE,
  );
  const byLane = new Map<LaneKey, IntakeRow[]>();
  for (const row of rows) {
    const key = laneKey(row.intent.lane);
    byLane.set(key, [...(byLane.get(key) ?? []), row]);
  }
  const taken = await Promise.all(
    lanes.map((lane) => takeLane(ports, lane, byLane.get(lane.key) ?? []).catch(waitsToo)),
  );
  return rows.length < AT_ONCE ? [] : lanes.filter((_, index) => taken[index]);
}

/** What no nonce can be had for now, because of the chain or the database, waits as well. */
function waitsToo(error: unknown): false {
  if (!(error instanceof FencepostError) || error.code !== "UNAVAILABLE") throw error;
  return false;
}

/**
 * In call order. What the chain cannot prepare now stops the rest of the lane, so that nothing overtakes. True where
 * every row was taken.
 */
async function takeLane(ports: IntakePorts, lane: OwnedLane, rows: readonly IntakeRow[]): Promise<boolean> {
  const context = ports.chains.get(lane.lane.chainId) as ChainContext;
  const prepared: NewTransaction[] = [];
  const fates: IntakeFate[] = [];
  let waits = false;
  for (const row of rows) {
    const result = await prepareRow(ports, {
      context,
      lane,
      row,
      behindPending: prepared.length > 0 || lane.hasUnmined(),
    });
    waits = result === "wait";
    if (result === "wait") break;
    if ("fate" in result) fates.push(result);
    else prepared.push(result);
  }
  if (prepared.length > 0) {
    const outcome = await allocate(ports, context, { lane, items: prepared });
    if (outcome === "fenced") return false;
    fates.push(...outcome.flatMap((fate, index) => duplicateFate(fate, prepared[index] as NewTransaction)));
  }
  await settle(ports, lane, fates);
  return !waits && !lane.stopped;
}

interface RowWork {
  readonly context: ChainContext;
  readonly lane: OwnedLane;
  readonly row: IntakeRow;
  readonly behindPending: boolean;
}

async function prepareRow(ports: IntakePorts, work: RowWork): Promise<NewTransaction | IntakeFate | "wait"> {
  const { context, lane, row, behindPending } = work;
  const { intakeId, intent } = row;
  try {
    const laneKnown = lane.cursor !== null;
    return { intakeId, intent: await prepare(context, intent, { behindPending, laneKnown }) };
  } catch (error) {
    if (!(error instanceof FencepostError)) throw error;
    if (error.code === "UNAVAILABLE" || error.extras.dependsOnPending === true) return "wait";
    return (await existingFate(ports, row)) ?? { intakeId, fate: "refused", event: "refuse", reason: error.message };
  }
}

/** Before any refusal the request id is looked up once more: an existing transaction wins. */
async function existingFate(ports: IntakePorts, { intakeId, intent }: IntakeRow): Promise<IntakeFate | null> {
  if (intent.requestId === null) return null;
  const found = await ports.store.findByRequestIds(intent.lane, [intent.requestId]);
  const other = found.find((existing) => existing.txId !== intent.txId && existing.state !== "CREATED");
  return other === undefined ? null : fateBeside(intakeId, other.txId, other.fingerprint === intent.fingerprint);
}

function duplicateFate(fate: AllocateFate, { intakeId, intent }: NewTransaction): readonly IntakeFate[] {
  if (intakeId === undefined) return [];
  if (fate.fate === "duplicate") return [fateBeside(intakeId, fate.existing.txId, fate.samePayload)];
  if (fate.fate === "refused") {
    return [{ intakeId, fate: "refused", event: "refuse", reason: `the database cannot store ${intent.txId}` }];
  }
  return [];
}

function fateBeside(intakeId: number, existing: string, samePayload: boolean): IntakeFate {
  if (samePayload) return { intakeId, fate: "alias", of: existing };
  const reason = `the request id belongs to ${existing}, whose payload differs`;
  return { intakeId, fate: "refused", event: "refuseReusedRequestId", reason };
}

async function settle(ports: IntakePorts, lane: OwnedLane, fates: readonly IntakeFate[]): Promise<void> {
  if (fates.length === 0 || lane.stopped) return;
  await ports.writer.write({ kind: "settleIntake", fence: lane.fence, fates });
  ports.feedGrew();
}
