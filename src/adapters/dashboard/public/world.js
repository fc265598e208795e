/**
 * Data shared by all pages: the list of problems and the overview. The node holds both polls until something changes;
 * then each page reloads its own data.
 *
 * @import { Attention, Caller, Chain, Overview, Scope } from "../page-types.ts"
 */
import { readApi } from "./api.js";
import { answered, failed, HELD_SECONDS, LATE_MS, sightOf } from "./sight.js";

const PAUSE_MS = 1_000;
const RETRY_MS = 2_000;
/**
 * Poll interval of a hidden tab. A hidden tab keeps no poll open, because a browser allows six connections per host.
 */
const HIDDEN_MS = 15_000;

export const world = {
  /** @type {Attention | null} */
  attention: null,
  /** @type {Overview | null} */
  overview: null,
  /**
   * The API key of this tab and the node that answers; null until it is known.
   *
   * @type {Caller | null}
   */
  me: null,
  /**
   * Names of signers, by address in lower case.
   *
   * @type {ReadonlyMap<string, string>}
   */
  names: new Map(),
  /** True in `fencepost dev` on its own chain, whose ether has no value. */
  isDev: document.documentElement.hasAttribute("data-dev"),
};

/**
 * Freshness of all shared data. In a hidden tab only the list of problems counts, because nothing else is polled there.
 */
export function sightNow() {
  return sightOf(document.hidden ? ["/attention"] : ["/attention", "/overview"]);
}

export function attentionSight() {
  return sightOf(["/attention"]);
}

/**
 * @param {string | number} chainId
 * @returns {Chain | null}
 */
export function chainOf(chainId) {
  return world.overview?.chains.find((chain) => chain.chainId === Number(chainId)) ?? null;
}

/**
 * Configured name of a signer; null if it has none.
 *
 * @param {string} signer
 */
export function nameOf(signer) {
  return world.names.get(signer.toLowerCase()) ?? null;
}

/**
 * True if this tab's API key has the scope. While the key is not known, every action is offered: the node refuses those
 * that the key may not take.
 *
 * @param {Scope} scope
 */
export function may(scope) {
  return world.me === null || world.me.scopes.includes(scope);
}

/** The key's scopes and the signers' names change only by hand, so a minute is soon enough. */
const CALLER_MS = 60_000;

/** @param {() => void} onNews */
async function followCaller(onNews) {
  for (;;) {
    await whileHidden();
    try {
      const [me, names] = await Promise.all([readApi("/me"), readApi("/signer-names")]);
      world.me = me;
      world.names = new Map(names.items.map(({ signer, name }) => [signer.toLowerCase(), name]));
      onNews();
      await pause(CALLER_MS);
    } catch {
      await pause(RETRY_MS);
    }
  }
}

/**
 * Polls the shared data. `onNews`: redraws the page. `onMoved`: transactions changed, so lists are outdated.
 *
 * @param {{ readonly onNews: () => void, readonly onMoved: () => void }} listeners
 */
export function followWorld({ onNews, onMoved }) {
  void followCaller(onNews);
  void follow("/attention", {
    onFailed: onNews,
    onAnswer: (attention) => {
      const isNews = attention.revision !== world.attention?.revision;
      world.attention = attention;
      onNews();
      if (isNews) onMoved();
    },
  });
  let counted = "";
  void follow("/overview", {
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

/**
 * Polls one path in a loop. If `isForSeen` is true, polling pauses while the tab is hidden.
 *
 * @template {"/attention" | "/overview"} P
 * @param {P} path
 * @param {{
 *   readonly onAnswer: (answer: P extends "/attention" ? Attention : Overview) => void,
 *   readonly onFailed: () => void,
 *   readonly isForSeen?: boolean,
 * }} options
 */
async function follow(path, { onAnswer, onFailed, isForSeen = false }) {
  /** @type {string | undefined} */
  let revision;
  for (;;) {
    if (isForSeen) await whileHidden();
    const leaving = new AbortController();
    const leave = () => leaving.abort();
    document.addEventListener("visibilitychange", leave);
    try {
      const isHeld = revision !== undefined && !document.hidden;
      const query = isHeld ? { revision, wait: HELD_SECONDS } : {};
      const limits = { signal: leaving.signal, withinMs: LATE_MS };
      /** @type {Attention | Overview} */
      const answer = await (path === "/attention"
        ? readApi("/attention", { query, ...limits })
        : readApi("/overview", { query, ...limits }));
      answered(path);
      revision = answer.revision;
      onAnswer(/** @type {P extends "/attention" ? Attention : Overview} */ (answer));
      await pauseUntilSeen(document.hidden ? HIDDEN_MS : PAUSE_MS);
    } catch (error) {
      // Ignore a request that this page aborted: its failure does not mean that the node is down.
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

/** @returns {Promise<unknown>} */
function whileHidden() {
  return document.hidden ? nextVisibility() : Promise.resolve();
}

function nextVisibility() {
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
  });
}

/**
 * Waits `ms`, or until the tab becomes visible.
 *
 * @param {number} ms
 */
function pauseUntilSeen(ms) {
  return document.hidden ? Promise.race([pause(ms), nextVisibility()]) : pause(ms);
}

/**
 * @param {number} ms
 * @returns {Promise<void>}
 */
export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
