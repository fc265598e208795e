/**
 * What the whole page knows, whichever part of it is shown: what needs attention and how everything stands. Both are held open
 * by the node until they change; a page that shows more asks for it again when something did.
 */
import { callApi } from "./api.js";
import { answered, failed, HELD_SECONDS, LATE_MS, sightOf } from "./sight.js";

const PAUSE_MS = 1_000;
const RETRY_MS = 2_000;
/** A tab that nobody sees holds no connection, of which a browser has six: its title and its icon are asked for this often. */
const HIDDEN_MS = 15_000;

export const world = {
  attention: null,
  overview: null,
  /** Where `fencepost dev` serves, on a chain of its own: its ether is play money. */
  isDev: document.documentElement.hasAttribute("data-dev"),
};

/** Of all that is followed, or of what needs attention alone, which is all that a hidden tab asks for. */
export function sightNow() {
  return sightOf(document.hidden ? ["/attention"] : ["/attention", "/overview"]);
}

export function attentionSight() {
  return sightOf(["/attention"]);
}

export function chainOf(chainId) {
  return world.overview?.chains.find((chain) => chain.chainId === Number(chainId)) ?? null;
}

/** `onNews`: something to draw. `onMoved`: transactions moved, so that lists of them are no longer true. */
export function followWorld({ onNews, onMoved }) {
  follow("/attention", {
    onFailed: onNews,
    onAnswer: (attention) => {
      const isNews = attention.revision !== world.attention?.revision;
      world.attention = attention;
      onNews();
      if (isNews) onMoved();
    },
  });
  let counted = "";
  follow("/overview", {
    isForSeen: true,
    onFailed: onNews,
    onAnswer: (overview) => {
      const counts = JSON.stringify([overview.lanes, overview.states]);
      world.overview = overview;
      onNews();
      if (counts !== counted) onMoved();
      counted = counts;
    },
  });
}

/** One question after the other. `isForSeen`: none while nobody looks. */
async function follow(path, { onAnswer, onFailed, isForSeen = false }) {
  let revision;
  for (;;) {
    if (isForSeen) await whileHidden();
    const leaving = new AbortController();
    const leave = () => leaving.abort();
    document.addEventListener("visibilitychange", leave);
    try {
      const isHeld = revision !== undefined && !document.hidden;
      const query = isHeld ? { revision, wait: HELD_SECONDS } : {};
      const answer = await callApi(path, { query, signal: leaving.signal, withinMs: LATE_MS });
      answered(path);
      revision = answer.revision;
      onAnswer(answer);
      await pauseUntilSeen(document.hidden ? HIDDEN_MS : PAUSE_MS);
    } catch (error) {
      // A request that this page took back says nothing about the node.
      if (!leaving.signal.aborted) {
        failed(path, error);
        onFailed();
        await pauseUntilSeen(document.hidden ? HIDDEN_MS : RETRY_MS);
      }
    } finally {
      document.removeEventListener("visibilitychange", leave);
    }
  }
}

function whileHidden() {
  return document.hidden ? nextVisibility() : Promise.resolve();
}

function nextVisibility() {
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
  });
}

/** Whoever comes back to the tab does not wait for the rest of a pause. */
function pauseUntilSeen(ms) {
  return document.hidden ? Promise.race([pause(ms), nextVisibility()]) : pause(ms);
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
