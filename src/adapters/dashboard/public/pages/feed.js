/** @import { Completion, CompletionsPage, PageOf, QueryAt } from "../../page-types.ts" */
import { ApiProblem, readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf, timeOf } from "../formats.js";
import { cell, chainName, empty, laneLink, quiet, table, transactionLink } from "../parts/words.js";
import { stateOf } from "../stages.js";
import { pause } from "../world.js";

const PAGE = 1_000;
const KEPT = 200;
const WAIT_SECONDS = 10;
const RETRY_MS = 2_000;

/**
 * Items of the feed that were read so far; kept while another page is open.
 *
 * @type {{ after: number | null, epoch: number | undefined, items: readonly Completion[], state: string }}
 */
const feed = { after: null, epoch: undefined, items: [], state: "looking for the end of the feed" };

/**
 * Page of the feed of completions, in the order that every reader of the feed sees.
 *
 * @type {PageOf<typeof feed>}
 */
export const feedPage = {
  title: () => "Feed",
  load: async () => feed,

  /** Follows the feed while the page is open. */
  async follow({ signal, redraw }) {
    while (!signal.aborted) {
      try {
        await readOn(signal, redraw);
      } catch {
        if (signal.aborted) return;
        feed.state = "interrupted, trying again";
        redraw();
        await pause(RETRY_MS);
      }
    }
  },

  view({ items, state }) {
    return [
      h("div.title", h("h1", "Completions"), h("span.quiet", { id: "feed-state" }, state)),
      items.length === 0
        ? empty("Nothing yet. A transaction appears here once its outcome is final.")
        : table(
            "Completions",
            [
              ["Number", "right mid"],
              ["Outcome"],
              ["Transaction", "grow"],
              ["Nonce", "right mid"],
              ["Signer", "wide"],
              ["At", "right"],
            ],
            items.map(row),
          ),
    ];
  },
};

/** @param {Completion} completion */
function row(completion) {
  const { seq, chainId, signer, nonce, settled, at } = completion;
  return h(
    "tr.completion",
    { key: seq },
    cell("right mono seq mid", countOf(seq)),
    cell("state-cell", stateOf(completion), settled ? null : h("span.tag", "not settled")),
    cell("grow", transactionLink(completion)),
    cell("right mono mid", nonce === null ? quiet("none") : countOf(nonce)),
    cell("wide", laneLink(chainId, signer), " ", chainName(chainId)),
    cell("right", timeOf(at)),
  );
}

/**
 * @param {AbortSignal} signal
 * @param {() => void} redraw
 */
async function readOn(signal, redraw) {
  if (feed.after === null) await findTail(signal);
  const after = feed.after ?? 0;
  feed.state = `live, at ${countOf(after)}`;
  redraw();
  const epoch = feed.epoch === undefined ? {} : { epoch: feed.epoch };
  take(await readPage({ after, ...epoch, wait: WAIT_SECONDS }, signal));
}

/** @param {CompletionsPage} page */
function take({ items, next, epoch }) {
  Object.assign(feed, { after: next, epoch, items: [...items.toReversed(), ...feed.items].slice(0, KEPT) });
}

/** @typedef {{ readonly epoch?: number, readonly resumeAfter?: number }} Resumption */

/**
 * Reads a page of the feed. After EPOCH_CHANGED or FEED_TRUNCATED, continues at the error's `resumeAfter`.
 *
 * @param {QueryAt<"/tx/completions">} query
 * @param {AbortSignal} signal
 * @returns {Promise<CompletionsPage>}
 */
async function readPage(query, signal) {
  try {
    return await readApi("/tx/completions", { query, signal });
  } catch (error) {
    if (!(error instanceof ApiProblem) || !["EPOCH_CHANGED", "FEED_TRUNCATED"].includes(error.code)) throw error;
    const { epoch = query.epoch, resumeAfter } = /** @type {Resumption} */ (error.problem);
    if (resumeAfter === undefined || epoch === undefined) throw error;
    return { epoch, next: resumeAfter, items: [] };
  }
}

/**
 * Finds the end of the feed without reading all of it: sequence numbers have no gaps, so a binary search finds the last
 * item. A short feed is shown completely.
 *
 * @param {AbortSignal} signal
 */
async function findTail(signal) {
  const first = await readPage({ after: 0, limit: PAGE }, signal);
  if (first.items.length < PAGE) return take(first);
  const { epoch } = first;
  /** @param {number} seq */
  const isReached = async (seq) => (await readPage({ after: seq, limit: 1, epoch }, signal)).items.length > 0;
  let known = first.next;
  let beyond = known * 2;
  while (await isReached(beyond)) [known, beyond] = [beyond, beyond * 2];
  while (beyond - known > 1) {
    const middle = Math.floor((known + beyond) / 2);
    if (await isReached(middle)) known = middle;
    else beyond = middle;
  }
  return take({ items: [], next: Math.max(0, known + 1 - KEPT), epoch });
}
