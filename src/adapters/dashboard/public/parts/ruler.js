/**
 * Ruler of a lane's nonces: final, in flight, waiting and unused. The page's address sets the shown window (`at`: the
 * nonce in its middle; `zoom`: the number of nonces). Buttons, wheel and arrow keys move the window.
 *
 * @import { NonceRuler, Query, Route, RouteQuery, SignerLane, Span } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { countOf, plural, wordsOf } from "../formats.js";
import { toLane, toTransaction } from "../routes.js";

/**
 * The shown window: first and last nonce, and how many.
 *
 * @typedef {{ readonly from: number, readonly to: number, readonly size: number }} Shown
 * @typedef {Omit<Span, "kind"> & { readonly kind: Span["kind"] | "closed" }} RulerSpan
 */

const ZOOMS = [20, 50, 120, 400, 2_000];
const FEWEST = 20;
const USUAL_ZOOM = 50;

const KINDS = {
  final: "final",
  mined: "mined",
  inFlight: "in flight",
  queued: "queued",
  held: "held back",
  reserved: "reserved",
  hole: "hole",
  stuck: "stuck",
  failed: "failed",
  closed: "used up on purpose",
  foreign: "foreign",
};

/** Up to this many shown nonces, there is space to label each with its number. */
const NUMBERED = 60;

/**
 * First and last nonce of the shown window. Without `at`, the lane's lowest open nonce is placed at one third of the
 * window.
 *
 * @param {RouteQuery} query
 * @param {SignerLane} lane
 * @returns {Shown}
 */
export function windowOf({ at, zoom }, { chainCounts, cursor, headOfLine }) {
  // Show all nonces of a lane that has only few.
  const usual = (cursor ?? 0) < FEWEST ? FEWEST : USUAL_ZOOM;
  const size = ZOOMS.includes(Number(zoom)) ? Number(zoom) : usual;
  const head = headOfLine?.nonce ?? Math.max(0, Math.min(cursor ?? 0, chainCounts?.latest ?? cursor ?? 0));
  const first =
    at === undefined || !/^\d{1,15}$/.test(at) ? head - Math.floor(size / 3) : Number(at) - Math.floor(size / 2);
  const from = Math.max(0, first);
  return { from, to: from + size - 1, size };
}

/**
 * Final sub-states that are intended, not failures: the nonce was used by a transaction without effect.
 *
 * @type {readonly (string | undefined)[]}
 */
const ON_PURPOSE = ["CANCELLED", "EXPIRED"];

/**
 * @param {Span} span
 * @returns {RulerSpan}
 */
function shownSpan(span) {
  const isMeant = span.kind === "failed" && ON_PURPOSE.includes(span.detail);
  return { ...span, ...(isMeant && { kind: "closed" }), ...(span.detail && { detail: wordsOf(span.detail) }) };
}

/**
 * @param {NonceRuler} nonces
 * @param {Shown} shown
 * @param {{ readonly route: Route, readonly go: (query: Query) => void, readonly lane: SignerLane }} context
 */
export function ruler({ spans: known, mined, cursor }, shown, { route, go, lane }) {
  const spans = known.map(shownSpan);
  const { from, to, size } = shown;
  const middle = from + Math.floor(size / 2);
  /** @param {number} by */
  const move = (by, zoom = size) => go({ ...route.query, at: Math.max(0, middle + by), zoom });
  const step = Math.max(1, Math.floor(size / 3));
  const closer = ZOOMS.findLast((zoom) => zoom < size);
  const wider = ZOOMS.find((zoom) => zoom > size);
  /** @type {Readonly<Record<string, () => unknown>>} */
  const keys = {
    ArrowLeft: () => move(-step),
    ArrowRight: () => move(step),
    "+": () => closer && move(0, closer),
    "-": () => wider && move(0, wider),
  };
  return h(
    "div.ruler",
    h(
      "div.ruler-tools",
      button("◀", "Lower nonces", from === 0 ? null : () => move(-step)),
      button("▶", "Higher nonces", () => move(step)),
      button("−", "Show more nonces", wider === undefined ? null : () => move(0, wider)),
      button("+", "Show fewer nonces", closer === undefined ? null : () => move(0, closer)),
      h("a.button", { href: toLane(lane.chainId, lane.signer) }, "Head of line"),
      h("span.quiet.mono", `${countOf(from)} to ${countOf(to)}`),
    ),
    h(
      "div",
      {
        class: size > NUMBERED ? "strip dense" : "strip",
        tabindex: "0",
        role: "group",
        "aria-label": `Nonces ${countOf(from)} to ${countOf(to)}. Arrow keys move, plus and minus zoom.`,
        onkeydown: (event) => {
          const perform = keys[event.key];
          if (perform === undefined) return;
          event.preventDefault();
          perform();
        },
        onwheel: (event) => event.deltaX !== 0 && throttled(() => move(Math.sign(event.deltaX) * Math.ceil(size / 10))),
      },
      spans.flatMap((span) => pieces(span, shown)),
      marker("chain", mined, shown, "the chain counts to here"),
      marker("cursor", cursor, shown, "next nonce"),
    ),
    scale(shown),
    legend(spans),
  );
}

/** Time of the last move by mouse wheel, to limit the rate of moves. */
let turnedAt = 0;
const TURN_MS = 80;

/** @param {() => void} work */
function throttled(work) {
  if (Date.now() - turnedAt < TURN_MS) return;
  turnedAt = Date.now();
  work();
}

/**
 * @param {string} text
 * @param {string} label
 * @param {(() => void) | null} onclick
 */
function button(text, label, onclick) {
  return h(
    "button.icon",
    { type: "button", "aria-label": label, title: label, disabled: onclick === null, onclick },
    text,
  );
}

/**
 * Elements of the ruler: one per span, or one per nonce if there is space.
 *
 * @param {RulerSpan} span
 * @param {Shown} shown
 */
function pieces({ from, to, kind, txId, detail }, shown) {
  const first = Math.max(from, shown.from);
  const last = Math.min(to, shown.to);
  if (first > last) return [];
  const isApart = shown.size <= NUMBERED && last > first;
  /** @type {readonly (readonly [low: number, high: number])[]} */
  const parts = isApart
    ? Array.from({ length: last - first + 1 }, (_, index) => /** @type {const} */ ([first + index, first + index]))
    : [[first, last]];
  return parts.map(([low, high]) => piece({ low, high, kind, txId, detail }, shown));
}

/**
 * @param {{ readonly low: number, readonly high: number, readonly kind: RulerSpan["kind"], readonly txId: string | undefined, readonly detail: string | undefined }} piece
 * @param {Shown} shown
 */
function piece({ low, high, kind, txId, detail }, shown) {
  const place = { left: percent(low - shown.from, shown), width: percent(high - low + 1, shown) };
  const nonces = low === high ? `nonce ${countOf(low)}` : `nonces ${countOf(low)} to ${countOf(high)}`;
  const label = `${nonces}: ${KINDS[kind]}${detail === undefined ? "" : `, ${detail}`}`;
  const number = low === high && shown.size <= NUMBERED ? h("span", String(low % 1_000)) : null;
  const common = { key: `${low}`, class: `nonce ${kind}`, style: place, title: label };
  if (txId !== undefined) return h("a", { ...common, href: toTransaction(txId), "aria-label": label }, number);
  return h("span", { ...common, role: "img", "aria-label": label }, number);
}

/**
 * @param {number} nonces
 * @param {Shown} shown
 */
function percent(nonces, { size }) {
  return `${((100 * nonces) / size).toFixed(3)}%`;
}

/**
 * @param {string} kind
 * @param {number | null} nonce
 * @param {Shown} shown
 * @param {string} label
 */
function marker(kind, nonce, shown, label) {
  if (nonce === null || nonce < shown.from || nonce > shown.to) return null;
  return h("span", {
    key: kind,
    class: `marker ${kind}`,
    style: { left: percent(nonce - shown.from, shown) },
    title: `${countOf(nonce)}: ${label}`,
  });
}

/**
 * Scale with four nonces below the ruler.
 *
 * @param {Shown} shown
 */
function scale({ from, size }) {
  const places = [0, 0.25, 0.5, 0.75].map((share) => from + Math.floor(size * share));
  return h(
    "div.scale",
    { "aria-hidden": "true" },
    places.map((nonce) => h("span", countOf(nonce))),
  );
}

/** @param {readonly RulerSpan[]} spans */
function legend(spans) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { kind, from, to } of spans) counts.set(kind, (counts.get(kind) ?? 0) + to - from + 1);
  const present = /** @type {(keyof typeof KINDS)[]} */ (Object.keys(KINDS)).filter((kind) => counts.has(kind));
  return h(
    "ul.legend",
    present.map((kind) =>
      h(
        "li",
        h("span", { class: `swatch nonce ${kind}`, "aria-hidden": "true" }),
        plural(counts.get(kind) ?? 0, KINDS[kind], KINDS[kind]),
      ),
    ),
  );
}
