import { hash } from "node:crypto";

/** Hash of facts, used as their revision: equal facts give the same revision on any node. */
export function revisionOf(facts: unknown): string {
  return hash("sha256", JSON.stringify(facts)).slice(0, 16);
}
