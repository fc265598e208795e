/**
 * Detects endpoints that do not keep up with the others. An endpoint counts as down if, for a minute, its newest block
 * (its head) stays the same while another endpoint's advances, or is far behind another's. As the preferred endpoint it
 * would stall the whole chain; as a spare it would delay every second opinion. If no endpoint's head advances, the
 * chain itself is stuck, and no endpoint counts as down.
 *
 * An endpoint that claims too high a head must not put honest endpoints out of use, because it would then decide alone.
 * So the endpoint that is ahead must return the blocks in between. They must be linked to the head of the late
 * endpoint, be the same at every check, and be equal to the blocks that the late endpoint reaches later. No endpoint
 * can know the hash of a future block. One case remains: while the chain makes no block for a minute, invented blocks
 * look like blocks that a dead endpoint has missed.
 *
 * Reads: block number of every endpoint; blocks only if heads differ. Writes: `behind` of each endpoint.
 */
import type { Hash } from "../../../domain/lane.ts";
import type { Block } from "../../../ports/chain.ts";
import type { Clock } from "../../../ports/clock.ts";

export type Header = Pick<Block, "number" | "hash" | "parentHash">;

export interface HeadWatchOptions<E> {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Reads an endpoint's block number; null if it does not answer. */
  readonly blockNumber: (endpoint: E) => Promise<number | null>;
  /**
   * Fetches headers in the order requested, null for a header that the endpoint does not have. The whole result is null
   * if the endpoint does not answer.
   */
  readonly headers: (endpoint: E, numbers: readonly number[]) => Promise<readonly (Header | null)[] | null>;
  /**
   * Called when an endpoint has fallen behind. `head`: its newest block number; `ahead`: the highest block number that
   * another endpoint proved to have.
   */
  readonly onBehind: (endpoint: E, heads: { readonly head: number; readonly ahead: number }) => void;
}

/** Interval between comparisons of the endpoints' newest blocks. */
export const COMPARE_EVERY_MS = 10_000;
const PATIENCE_MS = 60_000;
/** Number of blocks by which an endpoint may be behind the others as long as its own newest block advances. */
const MOST_BLOCKS_LATE = 20;

/** Hashes, by height, of the blocks that one endpoint returned above another endpoint's newest block. */
type Shown = ReadonlyMap<number, Hash>;

interface HeadOf<E> {
  readonly endpoint: E;
  readonly head: number;
}

interface Seen<E> {
  readonly head: number;
  /** Monotonic time since which the endpoint lags; null if it keeps up. */
  readonly lagsSinceMs: number | null;
  /**
   * Blocks above this endpoint's newest block, as each other endpoint returned them. `shownAtMs` is the monotonic time
   * of the last such response.
   */
  readonly shown: ReadonlyMap<E, Shown>;
  readonly shownAtMs: number;
}

export class HeadWatch<E extends { behind: boolean }> {
  readonly #options: HeadWatchOptions<E>;
  readonly #seen = new Map<E, Seen<E>>();

  constructor(options: HeadWatchOptions<E>) {
    this.#options = options;
  }

  /** Compares the newest blocks of the given endpoints: all that serve the chain and are not failing. */
  async look(endpoints: readonly E[]): Promise<void> {
    const heads = await Promise.all(endpoints.map(this.#options.blockNumber));
    const known = endpoints.flatMap((endpoint, index): readonly HeadOf<E>[] => {
      const head = heads[index] ?? null;
      return head === null ? [] : [{ endpoint, head }];
    });
    for (const endpoint of this.#seen.keys()) {
      // Forget the observations of a failing endpoint, so that it is compared anew when it answers again. An endpoint
      // that was behind stays behind: a failure does not prove that it caught up.
      if (!endpoints.includes(endpoint) && !endpoint.behind) this.#seen.delete(endpoint);
    }
    const isWhole = known.length === endpoints.length;
    await Promise.all(known.map((late) => this.#judge(late, known, isWhole)));
  }

  /**
   * Decides whether one endpoint is behind the others. `isWhole`: true if every endpoint has reported its newest block.
   * If an endpoint is silent, and none of the others proves that it is ahead, the previous decision stays for at most a
   * minute. Without this limit, an endpoint that is always silent, or that reports a height without proof, could keep
   * an endpoint excluded that has caught up.
   */
  async #judge(late: HeadOf<E>, known: readonly HeadOf<E>[], isWhole: boolean): Promise<void> {
    const { endpoint, head } = late;
    const before = this.#seen.get(endpoint);
    const allowed = before?.head === head ? 0 : MOST_BLOCKS_LATE;
    const rivals = known.filter((rival) => rival.head > head + allowed).map((rival) => rival.endpoint);
    const shown = new Map<E, Shown>();
    let isSure = isWhole;
    for (const rival of rivals) {
      const blocks = await this.#blocksAbove(late, rival, allowed + 1, before?.shown.get(rival));
      if (blocks === "silent") isSure = false;
      else if (blocks !== null) shown.set(rival, blocks);
    }
    const nowMs = this.#options.clock.monotonicMs();
    const shownAtMs = shown.size > 0 ? nowMs : (before?.shownAtMs ?? nowMs);
    if (shown.size === 0 && !isSure && nowMs - shownAtMs < PATIENCE_MS) return;
    const lagsSinceMs = shown.size === 0 ? null : (before?.lagsSinceMs ?? nowMs);
    this.#seen.set(endpoint, { head, lagsSinceMs, shown, shownAtMs });
    const wasBehind = endpoint.behind;
    endpoint.behind = lagsSinceMs !== null && (wasBehind || nowMs - lagsSinceMs >= PATIENCE_MS);
    const ahead = Math.max(...[...shown.values()].flatMap((blocks) => [...blocks.keys()]));
    if (endpoint.behind && !wasBehind) this.#options.onBehind(endpoint, { head, ahead });
  }

  /**
   * Fetches the blocks that another endpoint (the rival) has above the late endpoint's newest block. Null if the rival
   * cannot return them, or returned other blocks before.
   */
  async #blocksAbove(
    late: HeadOf<E>,
    rival: E,
    lead: number,
    before: Shown = new Map(),
  ): Promise<Shown | null | "silent"> {
    const { headers } = this.#options;
    const reached = [...before.keys()].filter((number) => number <= late.head);
    const foretold = reached.length === 0 ? late.head : Math.max(...reached);
    const above = Array.from({ length: lead }, (_, index) => late.head + 1 + index);
    const [own, others] = await Promise.all([headers(late.endpoint, [late.head, foretold]), headers(rival, above)]);
    if (own === null || others === null) return "silent";
    const shown = linkedTo(own[0] ?? null, others);
    // If the late endpoint has reached a height that the rival reported earlier, both must have the same block there.
    if (shown === null || (reached.length > 0 && own[1]?.hash !== before.get(foretold))) return null;
    const repeats = [...shown].every(([number, hash]) => (before.get(number) ?? hash) === hash);
    // Keep the blocks that the rival returned at greater heights, so that they are not fetched again.
    return repeats ? new Map([...[...before].filter(([number]) => number > late.head), ...shown]) : null;
  }
}

function linkedTo(head: Header | null, above: readonly (Header | null)[]): Shown | null {
  const shown = new Map<number, Hash>();
  let parent = head;
  for (const header of above) {
    if (parent === null || header?.parentHash !== parent.hash) return null;
    shown.set(header.number, header.hash);
    parent = header;
  }
  return shown;
}
