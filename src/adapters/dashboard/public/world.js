/**
 * What the whole page knows, whichever part of it is shown: what needs attention and how everything stands. Both are held open
 * by the node until they change; a page that shows more asks for it again when something did.
 */
import { callApi } from "./api.js";

const HELD_SECONDS = 20;
const PAUSE_MS = 1_000;
const RETRY_MS = 2_000;

export const world = {
  attention: null,
  overview: null,
  /** Where `fencepost dev` serves, on a chain of its own: its ether is play money. */
  isDev: document.documentElement.hasAttribute("data-dev"),
};

export function chainOf(chainId) {
  return world.overview?.chains.find((chain) => chain.chainId === Number(chainId)) ?? null;
}

/** `onNews`: something to draw. `onMoved`: transactions moved, so that lists of them are no longer true. */
export function followWorld({ onNews, onMoved }) {
  follow("/attention", (attention) => {
    world.attention = attention;
    onNews();
    onMoved();
  });
  let counted = "";
  follow("/overview", (overview) => {
    const counts = JSON.stringify([overview.lanes, overview.states]);
    world.overview = overview;
    onNews();
    if (counts !== counted) onMoved();
    counted = counts;
  });
}

/** One question after the other, for as long as somebody looks: a hidden page holds no connection. */
async function follow(path, take) {
  let revision;
  for (;;) {
    await whileHidden();
    const leaving = new AbortController();
    const leave = () => document.hidden && leaving.abort();
    document.addEventListener("visibilitychange", leave);
    try {
      const query = revision === undefined ? {} : { revision, wait: HELD_SECONDS };
      const answer = await callApi(path, { query, signal: leaving.signal });
      take(answer);
      revision = answer.revision;
      await pause(PAUSE_MS);
    } catch {
      await pause(RETRY_MS);
    } finally {
      document.removeEventListener("visibilitychange", leave);
    }
  }
}

function whileHidden() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
  });
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
