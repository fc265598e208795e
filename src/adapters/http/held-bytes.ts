/**
 * Memory that callers have this node hold for them: bodies that are read, messages and filters of WebSockets. It is reserved
 * before it is used, by the key and by the node: sixty bodies of 8 MiB that are announced and never end cost half a GiB.
 */
import { FencepostError } from "../../domain/errors.ts";

const MIB = 1024 * 1024;

export interface ByteLimits {
  readonly ofKey: number;
  readonly ofNode: number;
}

/** Four of the largest bodies for one key, so that no key alone fills the node. */
export const CALLERS_BYTES: ByteLimits = { ofKey: 32 * MIB, ofNode: 128 * MIB };

/** What was sent to WebSockets and not taken yet: an answer to a batch has up to 32 MiB. */
export const BACKLOG_BYTES: ByteLimits = { ofKey: 64 * MIB, ofNode: 256 * MIB };

export const BYTES_RULE = "bodyBytes";

export interface Held {
  /** Throws QUOTA_EXCEEDED or QUEUE_FULL where so many more are not to be had; what was held stays so. Fewer than 0 are given back. */
  grow(bytes: number): void;
  release(): void;
}

export class HeldBytes {
  private readonly limits: ByteLimits;
  private readonly ofKeys = new Map<string, number>();
  private total = 0;

  constructor(limits: ByteLimits) {
    this.limits = limits;
  }

  /** `name` null: no key is asked for, and there is nobody to keep apart from others. */
  by(name: string | null): Held {
    let held = 0;
    return {
      grow: (bytes) => {
        this.refuseOver(name, bytes);
        this.change(name, bytes);
        held += bytes;
      },
      release: () => {
        this.change(name, -held);
        held = 0;
      },
    };
  }

  private refuseOver(name: string | null, more: number): void {
    const { ofKey, ofNode } = this.limits;
    if (name !== null && this.heldBy(name) + more > ofKey) {
      const detail = `this API key has a node hold at most ${ofKey / MIB} MiB of bodies and messages at a time; nothing was accepted`;
      const extras = { rule: BYTES_RULE, limit: ofKey, retryAfterSeconds: 1 };
      throw new FencepostError("QUOTA_EXCEEDED", detail, extras);
    }
    if (this.total + more <= ofNode) return;
    const detail = "too many bytes of requests wait to be read and answered on this node; nothing was accepted";
    throw new FencepostError("QUEUE_FULL", detail, { retryAfterSeconds: 1 });
  }

  private change(name: string | null, by: number): void {
    this.total += by;
    if (name === null) return;
    const now = this.heldBy(name) + by;
    if (now === 0) this.ofKeys.delete(name);
    else this.ofKeys.set(name, now);
  }

  private heldBy(name: string): number {
    return this.ofKeys.get(name) ?? 0;
  }
}
