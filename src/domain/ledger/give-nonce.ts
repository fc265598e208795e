import { isFree } from "../holes.ts";
import type { Draft } from "./draft.ts";
import type { Ledger } from "./ledger.ts";
import type { WantedNonces } from "./writes.ts";

export interface Given {
  readonly nonce: number;
  /** It was a hole. */
  readonly recycled: boolean;
}

/** Gives one nonce after the other: free holes first, lowest first, then from the cursor on. */
export class Giver {
  private readonly floor: number | null;
  private readonly free: number[];

  constructor({ holes }: Ledger, { floor, fill = [] }: WantedNonces) {
    this.floor = floor;
    const offered = [...new Set(fill)].filter((nonce) => nonce >= (floor ?? 0)).sort((a, b) => a - b);
    this.free = offered.filter((nonce) => {
      const hole = holes.get(nonce);
      return hole !== null && isFree(hole);
    });
  }

  /** Null: the lane has no cursor yet, and the chain's count is not known. A hole is closed by it, the cursor not moved. */
  next(draft: Draft): Given | null {
    const { cursor } = draft.ledger;
    if (cursor === null && this.floor === null) return null;
    const hole = this.free.shift();
    if (hole === undefined) return { nonce: Math.max(cursor ?? 0, this.floor ?? 0), recycled: false };
    draft.record({ kind: "holeClosed", nonce: hole });
    return { nonce: hole, recycled: true };
  }
}
