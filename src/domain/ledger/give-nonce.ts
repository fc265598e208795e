import { isFree } from "../nonces/holes.ts";
import type { Draft } from "./draft.ts";
import type { Ledger } from "./ledger.ts";
import type { WantedNonces } from "./writes.ts";

export interface Given {
  readonly nonce: number;
  /** It was a hole. */
  readonly recycled: boolean;
}

/** The nonce above everything that was given or mined; null: the lane has no cursor yet, and the chain's count is not known. */
export function nextNonce({ cursor }: Pick<Ledger, "cursor">, floor: number | null): number | null {
  return cursor === null && floor === null ? null : Math.max(cursor ?? 0, floor ?? 0);
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
    const next = nextNonce(draft.ledger, this.floor);
    if (next === null) return null;
    const hole = this.free.shift();
    if (hole === undefined) return { nonce: next, recycled: false };
    draft.record({ kind: "holeClosed", nonce: hole });
    return { nonce: hole, recycled: true };
  }

  /**
   * For a caller that named its nonce: the next one above everything, and no other. A hole is not given: what stood there
   * may have moved down, and then a repeat of it at its old nonce would run twice.
   */
  exactly({ ledger }: Draft, nonce: number): Given | { readonly next: number } | null {
    const next = nextNonce(ledger, this.floor);
    if (next === null) return null;
    return nonce === next ? { nonce, recycled: false } : { next };
  }
}
