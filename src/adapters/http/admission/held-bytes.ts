/**
 * Budget of memory that callers occupy: request bodies, messages and filters of WebSockets. Bytes are reserved before
 * use, per key and per node: sixty announced bodies of 8 MiB that never end would cost half a GiB.
 */
import { FencepostError } from "../../../domain/errors.ts";
import { KeyCounts } from "./key-counts.ts";

const MIB = 1024 * 1024;

interface ByteLimits {
  readonly ofKey: number;
  readonly ofNode: number;
}

/** One key gets four bodies of maximum size, so that no key alone fills the node. */
export const CALLERS_BYTES: ByteLimits = { ofKey: 32 * MIB, ofNode: 128 * MIB };

/** Bytes sent to WebSockets and not read yet: the answer to a batch has up to 32 MiB. */
export const BACKLOG_BYTES: ByteLimits = { ofKey: 64 * MIB, ofNode: 256 * MIB };

const BYTES_RULE = "bodyBytes";

export interface Held {
  /**
   * Reserves more bytes, or returns some if negative. Returns QUOTA_EXCEEDED or QUEUE_FULL if the budget is used up;
   * earlier reservations stay.
   */
  grow(bytes: number): FencepostError | null;
  release(): void;
}

export type HeldBytes = ReturnType<typeof heldBytes>;

/** Reservations under a key's name. Null: no API keys are required, so only the node's limit applies. */
export function heldBytes({ ofKey, ofNode }: ByteLimits) {
  const counts = new KeyCounts();
  const refusalOf = (name: string | null, more: number) => {
    if (name !== null && counts.of(name) + more > ofKey) {
      const detail = `the requests of this API key may occupy at most ${ofKey / MIB} MiB of a node at a time; nothing was accepted`;
      return new FencepostError("QUOTA_EXCEEDED", detail, { rule: BYTES_RULE, limit: ofKey, retryAfterSeconds: 1 });
    }
    if (counts.total + more <= ofNode) return null;
    const detail = "too many bytes of requests wait to be read and answered on this node; nothing was accepted";
    return new FencepostError("QUEUE_FULL", detail, { retryAfterSeconds: 1 });
  };
  return (name: string | null): Held => {
    let held = 0;
    const add = (bytes: number) => {
      counts.add(name, bytes);
      held += bytes;
    };
    return {
      grow: (bytes) => {
        const refusal = refusalOf(name, bytes);
        if (refusal === null) add(bytes);
        return refusal;
      },
      release: () => add(-held),
    };
  };
}
