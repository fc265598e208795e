/**
 * Budget of the memory that callers occupy: request bodies, messages and filters of WebSockets. Bytes are reserved
 * before use, per API key and per node: otherwise sixty announced bodies of 8 MiB that never end would occupy half a
 * GiB.
 */
import { FencepostError } from "../../../domain/errors.ts";
import { KeyCounts } from "./key-counts.ts";

const MIB = 1024 * 1024;

interface ByteLimits {
  readonly ofKey: number;
  readonly ofNode: number;
}

/**
 * Limits on bytes received from callers: request bodies, messages and filters of WebSockets. One API key gets four
 * bodies of maximum size, so that no key alone fills the node.
 */
export const CALLERS_BYTES: ByteLimits = { ofKey: 32 * MIB, ofNode: 128 * MIB };

/** Limits on bytes sent to WebSockets and not yet read by the client: the response to a batch has up to 32 MiB. */
export const BACKLOG_BYTES: ByteLimits = { ofKey: 64 * MIB, ofNode: 256 * MIB };

const BYTES_RULE = "bodyBytes";

export interface Held {
  /**
   * Reserves more bytes, or releases some if negative. Returns QUOTA_EXCEEDED or QUEUE_FULL if the budget is used up;
   * earlier reservations stay.
   */
  grow(bytes: number): FencepostError | null;
  release(): void;
}

export type HeldBytes = ReturnType<typeof heldBytes>;

/**
 * Creates a budget. Reservations are counted per API key name. The name is null if no keys are required; then only the
 * node's limit applies.
 */
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
