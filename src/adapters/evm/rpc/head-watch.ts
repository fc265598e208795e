/**
 * Whether the endpoints of a chain keep up with each other. One whose head stands still while another's moves on, or that
 * is far behind another, for a minute, counts as down: as the preferred one it would hold the whole chain up, as a spare
 * it would be waited for whenever a second opinion is needed. Where all stand still, the chain does, and none is down.
 *
 * How high a chain is, an endpoint only claims, and one that claims too much must not put honest ones out of use: the
 * liar would be left alone to decide. So the endpoint that is ahead has to show the blocks in between, linked to the head of the
 * one behind and the same at every look, and where that one moves it must come to have those very blocks. No endpoint can show
 * today the hash of a block that the chain will have tomorrow. What remains: while the real chain makes no block for a
 * minute, invented ones cannot be told from real ones that a dead endpoint has missed.
 *
 * Reads: every endpoint's block number; blocks only of those that differ. Writes: whether an endpoint is `behind`.
 */
import type { Hash } from "../../../domain/lane.ts";
import type { Block } from "../../../ports/chain.ts";
import type { Clock } from "../../../ports/clock.ts";

export type Header = Pick<Block, "number" | "hash" | "parentHash">;

export interface HeadWatchOptions<E> {
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Null where it does not answer. */
  readonly blockNumber: (endpoint: E) => Promise<number | null>;
  /** In the order asked, null where it has none; null instead of all of them where it does not answer. */
  readonly headers: (endpoint: E, numbers: readonly number[]) => Promise<readonly (Header | null)[] | null>;
  /** It has just been found behind: where it stands, and a block that another one has. */
  readonly onBehind: (endpoint: E, heads: { readonly head: number; readonly ahead: number }) => void;
}

/** How often heads should be compared. */
export const COMPARE_EVERY_MS = 10_000;
const PATIENCE_MS = 60_000;
/** So many blocks late is still keeping up, for one that moves. */
const MOST_BLOCKS_LATE = 20;

/** Hashes of blocks that an endpoint showed above the head of another, by height. */
type Shown = ReadonlyMap<number, Hash>;

interface HeadOf<E> {
  readonly endpoint: E;
  readonly head: number;
}

interface Seen<E> {
  readonly head: number;
  /** Monotonic: since when it has lagged; null: it keeps up. */
  readonly lagsSinceMs: number | null;
  /** By whom, and (monotonic) when it was shown last. */
  readonly shown: ReadonlyMap<E, Shown>;
  readonly shownAtMs: number;
}

export class HeadWatch<E extends { behind: boolean }> {
  readonly #options: HeadWatchOptions<E>;
  readonly #seen = new Map<E, Seen<E>>();

  constructor(options: HeadWatchOptions<E>) {
    this.#options = options;
  }

  /** Compares those given: all that serve the chain and are not known to fail. */
  async look(endpoints: readonly E[]): Promise<void> {
    const heads = await Promise.all(endpoints.map(this.#options.blockNumber));
    const known = endpoints.flatMap((endpoint, index): readonly HeadOf<E>[] => {
      const head = heads[index] ?? null;
      return head === null ? [] : [{ endpoint, head }];
    });
    for (const endpoint of this.#seen.keys()) {
      // A failing endpoint is compared anew when it answers again. One that was behind stays so: failing is no catching up.
      if (!endpoints.includes(endpoint) && !endpoint.behind) this.#seen.delete(endpoint);
    }
    const isWhole = known.length === endpoints.length;
    await Promise.all(known.map((late) => this.#judge(late, known, isWhole)));
  }

  /**
   * `isWhole`: every endpoint has a head. Where one is silent, and none of the others is ahead, it stays as it was, for a
   * minute: else an endpoint that is silent for good, or only claims a height, would keep out one that has long caught up.
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

  /** What the rival has shown above the head of the late one; null where it cannot, or had shown something else. */
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
    // The late one has come to a block that was foretold: it must be that very block.
    if (shown === null || (reached.length > 0 && own[1]?.hash !== before.get(foretold))) return null;
    const repeats = [...shown].every(([number, hash]) => (before.get(number) ?? hash) === hash);
    // What it showed further up is kept, although it was not asked for again.
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
