/**
 * Stage 1, for an owner without a URL: creates that another process enqueued for one of its lanes (cluster/pending-creates.ts),
 * made as if that process had forwarded them.
 *
 * Reads: the waiting request. Writes: nothing itself. Invariants: I4, I5. A crash before the answer is written leaves them made or
 * not; the lane's next owner looks for their ids before it makes anything.
 */
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { type Lane, laneKey } from "../../../domain/lane.ts";
import { problemFrom } from "../../../domain/text/refusal.ts";
import type { OwnerAction } from "../../cluster/owner-actions.ts";
import { readForwardedCreate } from "../../requests/normalise.ts";
import type { Result } from "./answer-existing.ts";
import type { Creates } from "./create.ts";

export function dequeuedCreates(creates: Pick<Creates, "create">): OwnerAction {
  return async ({ lane }, { body, again = false }) => {
    const asked = readAll(lane, body.creates);
    const results = await creates.create(asked, { repeat: again });
    refuseLost(results);
    return { results: results.map((each) => (each instanceof FencepostError ? problemFrom(each) : each)) };
  };
}

function readAll(lane: Lane, creates: unknown) {
  if (!Array.isArray(creates)) throw invalid("creates", "must be an array");
  return creates.map((each: unknown, index) => {
    const create = readForwardedCreate(each, `creates.${index}`);
    const { chosen, request } = create;
    const named = { chainId: Number(request.chainId), signer: String(chosen ?? request.signer).toLowerCase() };
    if (laneKey(named as Lane) !== laneKey(lane)) throw invalid(`creates.${index}`, "is for another signer");
    return create;
  });
}

/** The lane was lost on the way: its next owner makes the rest, and recognises what was made. */
function refuseLost(results: readonly Result[]) {
  const lost = results.filter(
    (each) => each instanceof FencepostError && each.code === "NOT_LEADER",
  ) as FencepostError[];
  const [first] = lost;
  if (first === undefined) return;
  const isNothingDone = lost.length === results.length && lost.every(({ extras }) => extras.outcome === undefined);
  throw isNothingDone
    ? first
    : new FencepostError("NOT_LEADER", first.message, { ...first.extras, outcome: "unknown" });
}
