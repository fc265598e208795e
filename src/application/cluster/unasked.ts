import { FencepostError } from "../../domain/errors.ts";
import { BetweenOwners } from "../lane/between-owners.ts";
import { NobodyActs } from "./journey.ts";
import { OutOfReach } from "./route.ts";

/**
 * Nothing was done, and the reason is not the request: the lane's owner cannot be asked. What was wanted of it is left for it
 * in the database. A node that others can reach does that for owners that nobody can reach, and for no other: while a lane changes
 * hands among nodes with URLs, its caller does better to ask again. What may have been done, unheard, is never left.
 */
export function isUnasked(fate: unknown, isEmbedded: boolean): boolean {
  if (!(fate instanceof FencepostError) || fate.extras.outcome === "unknown") return false;
  if (fate instanceof OutOfReach) return true;
  return isEmbedded && (fate.code === "NOT_LEADER" || fate instanceof BetweenOwners || fate instanceof NobodyActs);
}
