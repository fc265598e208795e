import { callApi } from "./api.js";
import { byId, h, shortHex, timeOf } from "./dom.js";
import { stateOf } from "./stages.js";

const PAGE = 1000;
const KEPT = 40;
const WAIT_SECONDS = 20;
const MOODS = { CONFIRMED: "done", FAILED_FINAL: "failed", STUCK: "stuck", REORGED: "stuck" };

/**
 * Follows the feed for ever, one long poll after the other, and calls back after each page that had something.
 * It throws when the node is gone; its caller starts it again.
 */
export async function followFeed(position, onCompletions) {
  let { after, epoch } = position.after === undefined ? await findTail() : position;
  for (;;) {
    byId("completions-state").textContent = `live, at ${after.toLocaleString("en")}`;
    const page = await readPage({ after, epoch, wait: WAIT_SECONDS });
    ({ next: after, epoch } = page);
    Object.assign(position, { after, epoch });
    if (page.items.length === 0) continue;
    show(page.items);
    onCompletions();
  }
}

/** A new epoch is part of life: go on where the node says, and tell the reader. */
async function readPage(query) {
  try {
    return await callApi(`/tx/completions?${parameters(query)}`);
  } catch (error) {
    if (error.code !== "EPOCH_CHANGED" && error.code !== "FEED_TRUNCATED") throw error;
    const { epoch = query.epoch, resumeAfter } = error.problem;
    if (resumeAfter === undefined) throw error;
    return { epoch, next: resumeAfter, items: [] };
  }
}

/**
 * The end of the feed, without reading a million entries: sequence numbers have no gaps, so the last one is found by
 * doubling and halving. A short feed is shown whole.
 */
async function findTail() {
  const first = await readPage({ after: 0, limit: PAGE });
  if (first.items.length < PAGE) {
    show(first.items);
    return { after: first.next, epoch: first.epoch };
  }
  const { epoch } = first;
  let known = first.next;
  let beyond = known * 2;
  while (await isReached(beyond, epoch)) [known, beyond] = [beyond, beyond * 2];
  while (beyond - known > 1) {
    const middle = Math.floor((known + beyond) / 2);
    if (await isReached(middle, epoch)) known = middle;
    else beyond = middle;
  }
  return { after: Math.max(0, known + 1 - KEPT), epoch };
}

/** Is there an entry after `seq`? */
async function isReached(seq, epoch) {
  const { items } = await readPage({ after: seq, limit: 1, epoch });
  return items.length > 0;
}

function parameters(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
}

function show(items) {
  const list = byId("completion-list");
  list.prepend(...items.slice(-KEPT).reverse().map(entryOf));
  while (list.children.length > KEPT) list.lastElementChild?.remove();
}

function entryOf({ seq, txId, requestId, state, subState, settled, at }) {
  return h(
    "li",
    { class: "completion" },
    h("span", { class: "seq" }, String(seq)),
    h("span", { class: "who", title: txId }, requestId ?? shortHex(txId)),
    stateOf({ state, subState: settled ? subState : "not settled" }, MOODS[state]),
    h("time", { class: "quiet", datetime: at }, timeOf(at)),
  );
}
