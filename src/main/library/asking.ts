import { problemOf } from "../../adapters/http/exchange/problems.ts";
import type { Created, CreateRequest } from "../../application/api.ts";
import type { FencepostApi } from "../../application/operations/calls.ts";
import { type CallOptions, underDeadline } from "../../client/deadline.ts";
import { fromProblem } from "../../client/error-classes.ts";
import { FencepostError } from "../../domain/errors.ts";
import type { Checksum } from "../../domain/text/checksum.ts";
import type { Mask } from "../../domain/text/mask.ts";
import type { Clock } from "../../ports/clock.ts";

/** The node that the face is put on. */
export interface Inside<SendOptions = CallOptions> {
  readonly api: FencepostApi;
  readonly checksum: Checksum;
  readonly mask: Mask;
  readonly clock: Pick<Clock, "now">;
  /** Aborted when the node is closed, with the reason. */
  readonly closing: AbortSignal;
  /** Takes one intent in, by whatever way it goes. */
  take(intent: CreateRequest, options: SendOptions): Promise<Created>;
}

/** Who acts where there is no API key: the process that embeds the node. */
export const ACTOR = "operator:embedded";

/** Calls of the face: bounded in time, and failing as they would over HTTP. */
export class Asking {
  private readonly mask: Mask;
  private readonly closing: AbortSignal;

  constructor({ mask, closing }: Pick<Inside, "mask" | "closing">) {
    this.mask = mask;
    this.closing = closing;
  }

  async ask<T>(options: CallOptions | undefined, work: () => Promise<T>): Promise<T> {
    try {
      // Most calls are given no limit, and a process may make thousands a second.
      return await (options === undefined ? work() : underDeadline("no answer", options, work));
    } catch (error) {
      throw this.told(error);
    }
  }

  /** A read that closing cut off failed because of that, not because of the database. */
  async read<T>(options: CallOptions | undefined, work: () => Promise<T>): Promise<T> {
    try {
      return await this.ask(options, work);
    } catch (error) {
      this.closing.throwIfAborted();
      throw error;
    }
  }

  told(error: unknown): unknown {
    return error instanceof FencepostError ? fromProblem(problemOf(error, this.mask), error) : error;
  }

  /** Ends with the node, too. */
  untilClosed<T extends CallOptions>(options: T): T & { readonly signal: AbortSignal } {
    const { signal } = options;
    return { ...options, signal: signal === undefined ? this.closing : AbortSignal.any([this.closing, signal]) };
  }
}
