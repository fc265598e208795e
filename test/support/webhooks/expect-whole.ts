/** Compares what a receiver took with the feed. */
import { expect } from "vitest";
import type { Completion, FencepostClient } from "../../../src/client/index.ts";
import { WINDOW } from "../../../src/domain/webhooks/delivery-window.ts";
import type { Delivered } from "./receiver-process.ts";

/** Something that happened to a node or a receiver. Deliveries after it, until the next one, may be repeats. */
export interface Strike {
  readonly atMs: number;
  readonly name: string;
}

const PAGE = 1_000;

export async function wholeFeed(client: FencepostClient): Promise<readonly Completion[]> {
  const items: Completion[] = [];
  for (;;) {
    const page = await client.completionsPage({ after: items.at(-1)?.seq ?? 0, limit: PAGE });
    items.push(...page.items);
    if (page.items.length < PAGE) return items;
  }
}

/** Drops repeats by their id, as a receiver does: the deliveries in the order of their first arrival. */
export function withoutRepeats(taken: readonly Delivered[]): readonly Delivered[] {
  const first = new Map<string, Delivered>();
  for (const each of taken) if (!first.has(each.id)) first.set(each.id, each);
  return [...first.values()];
}

/** Nothing of the feed is missing or different, and the outcomes of each lane arrived in its order. */
export function expectWhole(taken: readonly Delivered[], feed: readonly Completion[]): void {
  const completions = withoutRepeats(taken).filter(({ kind }) => kind === "completion");
  const arrived = completions.map(({ body }) => JSON.parse(body) as Completion);
  const byBody = new Set(completions.map(({ body }) => body));
  expect(feed.filter((item) => !byBody.has(JSON.stringify(item))).slice(0, 3), "missing").toEqual([]);
  expect(completions, "each once, and nothing else").toHaveLength(feed.length);
  const last = new Map<string, number>();
  const late = arrived.filter(({ signer, chainId, seq }) => {
    const lane = `${chainId}:${signer}`;
    const isLate = seq < (last.get(lane) ?? 0);
    last.set(lane, seq);
    return isLate;
  });
  expect(late.slice(0, 3), "out of the order of their lane").toEqual([]);
}

/** Number of repeats after each strike, until the next one. None comes before the first, and at most a window after each. */
export function expectFewRepeats(taken: readonly Delivered[], strikes: readonly Strike[]): readonly string[] {
  const seen = new Set<string>();
  const repeats = new Map<Strike | null, number>();
  for (const { id, atMs } of taken) {
    const cause = strikes.findLast((strike) => strike.atMs <= atMs) ?? null;
    if (seen.has(id)) repeats.set(cause, (repeats.get(cause) ?? 0) + 1);
    seen.add(id);
  }
  expect(repeats.get(null) ?? 0, "repeats before anything happened").toBe(0);
  for (const count of repeats.values()) expect(count).toBeLessThanOrEqual(WINDOW);
  return strikes.map((strike) => `${strike.name} ${repeats.get(strike) ?? 0}`);
}
