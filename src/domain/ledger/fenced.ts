import type { Fence } from "../lane.ts";

/** Fields of every write: its kind, and the proof that its writer owns the lane. */
export interface Fenced<Kind extends string> {
  readonly kind: Kind;
  readonly fence: Fence;
}
