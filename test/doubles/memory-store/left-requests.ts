import type { Lane } from "../../../src/domain/lane.ts";
import type { BegunRequest, LeftRequest, LeftStanding } from "../../../src/ports/left-request-store.ts";
import { type DatabaseState, sameLane } from "./state.ts";

/** A request that a node enqueued for the owner of a lane. */
export interface LeftRequestRow extends LeftRequest {
  readonly until: Date;
  readonly begunBy: string | null;
  readonly answer: string | null;
}

export function leaveRequest({ leftRequests }: DatabaseState, request: LeftRequest, until: Date): void {
  leftRequests.set(request.leftId, { ...request, until, begunBy: null, answer: null });
}

export function openRequests({ leftRequests }: DatabaseState, now: Date): readonly LeftRequestRow[] {
  return [...leftRequests.values()].filter(({ answer, until }) => answer === null && until > now);
}

/** Selects the requests to begin: those of `lanes`, without the ids in `except`. */
export interface Beginning {
  readonly lanes: readonly Lane[];
  readonly except: readonly string[];
  readonly now: Date;
}

export function beginRequests(
  state: DatabaseState,
  instanceId: string,
  { lanes, except, now }: Beginning,
): readonly BegunRequest[] {
  const due = openRequests(state, now).filter(
    ({ leftId, lane }) => !except.includes(leftId) && lanes.some((own) => sameLane(own, lane)),
  );
  return due.map((row) => {
    state.leftRequests.set(row.leftId, { ...row, begunBy: instanceId });
    const { until: _, begunBy, answer: __, ...request } = row;
    return { ...request, begunBefore: begunBy !== null };
  });
}

/** Changes a request that an instance has begun, but only if it still belongs to that instance and has no answer. */
export function changeBegun(
  { leftRequests }: DatabaseState,
  { leftId, instanceId }: { readonly leftId: string; readonly instanceId: string },
  change: Partial<LeftRequestRow>,
): void {
  const row = leftRequests.get(leftId);
  if (row?.begunBy === instanceId && row.answer === null) leftRequests.set(leftId, { ...row, ...change });
}

export function leftStanding({ leftRequests }: DatabaseState, leftIds: readonly string[]): readonly LeftStanding[] {
  return leftIds.flatMap((leftId) => {
    const row = leftRequests.get(leftId);
    return row === undefined ? [] : [{ leftId, begun: row.begunBy !== null, answer: row.answer }];
  });
}

export function withdrawRequest({ leftRequests }: DatabaseState, leftId: string): boolean {
  const row = leftRequests.get(leftId);
  return row !== undefined && row.begunBy === null && row.answer === null && leftRequests.delete(leftId);
}
