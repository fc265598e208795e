/**
 * Plots of the strip, as plain SVG over one time axis: created and final, time to finality, base fee against offers,
 * fees paid. Troubles are marks at the top of each.
 *
 * @import { Child, History } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { countOf, durationOf, etherOf, gweiOf, minuteOf, wordsOf, zoneName } from "../formats.js";

const WIDTH = 600;
const HEIGHT = 90;
/** Height of the marks of troubles. */
const MARK = 7;

/**
 * A drawn row of values: `kind` names its colour; null is a gap.
 *
 * @typedef {{ readonly kind: string, readonly name: string, readonly values: readonly (number | null)[], readonly isLine?: boolean }} Series
 * @typedef {{
 *   readonly axis: Axis, readonly stretch: (from: number, to: number) => string, readonly series: readonly Series[],
 *   readonly marks: readonly History["buckets"][number]["troubles"][], readonly show: (value: number) => string,
 * }} Plot
 * @typedef {{ readonly fromMs: number, readonly toMs: number, readonly stepMs: number, readonly count: number }} Axis
 */

/**
 * @param {History} history
 * @param {History} fees
 * @param {(from: number, to: number) => string} stretch
 */
export function panels(history, fees, stretch) {
  const axis = axisOf(history);
  const all = spread(history, axis);
  const priced = spread(fees, axis);
  const context = { axis, stretch, marks: all.map((bucket) => bucket?.troubles ?? []) };
  /** @param {(bucket: History["buckets"][number]) => number} value */
  const counts = (value) => all.map((bucket) => (bucket === null ? 0 : value(bucket)));
  const created = counts((bucket) => bucket.created);
  const completed = counts((bucket) => bucket.completed);
  const failed = counts((bucket) => bucket.failed);
  const paid = all.reduce((sum, bucket) => sum + BigInt(bucket?.fees ?? 0), 0n);
  return h(
    "div.panels",
    panel(
      "Created and final",
      `${countOf(total(created))} created, ${countOf(total(completed))} final, ${countOf(total(failed))} failed`,
      {
        ...context,
        show: countOf,
        series: [
          { kind: "completed", name: "final", values: completed },
          { kind: "failed", name: "failed", values: failed },
          { kind: "created", name: "created", values: created, isLine: true },
        ],
      },
    ),
    panel(
      "Time to finality",
      lastOf(
        all.map((bucket) => bucket?.finalityMs ?? null),
        ({ p50, p95 }) => `p50 ${durationOf(p50)}, p95 ${durationOf(p95)}`,
      ),
      {
        ...context,
        show: durationOf,
        series: [
          { kind: "p95", name: "p95", values: all.map((bucket) => bucket?.finalityMs?.p95 ?? null), isLine: true },
          { kind: "p50", name: "p50", values: all.map((bucket) => bucket?.finalityMs?.p50 ?? null), isLine: true },
        ],
      },
    ),
    feePanel(priced, context),
    panel("Fees paid", `${etherOf(String(paid))} ether`, {
      ...context,
      show: (value) => `${etherOf(String(Math.round(value)))} ether`,
      series: [{ kind: "spend", name: "fees", values: all.map((bucket) => numberOf(bucket?.fees) ?? 0) }],
    }),
  );
}

/**
 * @param {readonly (History["buckets"][number] | null)[]} priced
 * @param {Omit<Plot, "show" | "series">} context
 */
function feePanel(priced, context) {
  return panel(
    "Base fee and offers",
    lastOf(
      priced.map((bucket) => bucket?.baseFee ?? null),
      ({ avg }) => `base fee ${gweiOf(avg)} gwei`,
    ),
    {
      ...context,
      show: (value) => `${gweiOf(value)} gwei`,
      series: [
        {
          kind: "offered",
          name: "offered",
          values: priced.map((bucket) => numberOf(bucket?.offered?.avg)),
          isLine: true,
        },
        {
          kind: "base",
          name: "base fee",
          values: priced.map((bucket) => numberOf(bucket?.baseFee?.avg)),
          isLine: true,
        },
      ],
    },
  );
}

/** @param {string | undefined} wei */
function numberOf(wei) {
  return wei === undefined ? null : Number(wei);
}

/** @param {readonly number[]} values */
function total(values) {
  return values.reduce((sum, value) => sum + value, 0);
}

/**
 * @template T
 * @param {readonly (T | null)[]} values
 * @param {(value: T) => string} text
 */
function lastOf(values, text) {
  const last = values.findLast((value) => value !== null);
  return last === null || last === undefined ? "nothing yet" : `${text(last)}, last`;
}

/**
 * @param {History} history
 * @returns {Axis}
 */
function axisOf({ from, to, stepSeconds }) {
  const stepMs = stepSeconds * 1_000;
  const fromMs = Math.floor(Date.parse(from) / stepMs) * stepMs;
  const count = Math.max(1, Math.ceil((Date.parse(to) - fromMs) / stepMs));
  return { fromMs, toMs: fromMs + count * stepMs, stepMs, count };
}

/**
 * One entry per step; null if nothing happened in it.
 *
 * @param {History} history
 * @param {Axis} axis
 */
function spread({ buckets }, { fromMs, stepMs, count }) {
  /** @type {(History["buckets"][number] | null)[]} */
  const all = Array.from({ length: count }, () => null);
  for (const bucket of buckets) {
    const index = Math.floor((Date.parse(bucket.at) - fromMs) / stepMs);
    if (index >= 0 && index < count) all[index] = bucket;
  }
  return all;
}

/**
 * @param {string} title
 * @param {string} summary
 * @param {Plot} plot
 */
function panel(title, summary, { axis, stretch, series, marks, show }) {
  const highest = Math.max(...series.flatMap(({ values }) => values.map((value) => value ?? 0)), 0);
  const label = `${title}, ${minuteOf(axis.fromMs)} to ${minuteOf(axis.toMs)} ${zoneName()}: ${summary}.`;
  return h(
    "figure.panel",
    { key: title },
    h("figcaption", h("b", title), " ", h("span.quiet", summary)),
    h(
      "svg.plot",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": label,
        ...choosing(axis, stretch),
      },
      series.map(({ kind, values, isLine = false }) =>
        h("path", {
          key: kind,
          class: `${isLine ? "line" : "columns-of"} ${kind}`,
          d: isLine ? lineOf(values, highest) : columnsOf(values, highest),
        }),
      ),
      marks.flatMap((troubles, index) => (troubles.length === 0 ? [] : [mark(troubles, index, axis)])),
      h("rect.chosen", { key: "chosen", y: "0", height: String(HEIGHT), width: "0" }),
    ),
    h(
      "p.axis",
      h("span", minuteOf(axis.fromMs)),
      h("span", highest === 0 ? "" : `up to ${show(highest)}`),
      h("span", minuteOf(axis.toMs)),
    ),
    h("p.key", series.length < 2 ? null : series.map(({ kind, name }) => h("span", { key: kind, class: kind }, name))),
  );
}

/**
 * @param {History["buckets"][number]["troubles"]} troubles
 * @param {number} index
 * @param {Axis} axis
 * @returns {Child}
 */
function mark(troubles, index, { fromMs, stepMs, count }) {
  const text = troubles.map((trouble) => `${wordsOf(trouble.code)} ${countOf(trouble.count)}`).join(", ");
  const x = ((index + 0.5) * WIDTH) / count;
  return h(
    "path.mark-of-trouble",
    { key: `mark${index}`, d: `M${x - 4} 0h8l-4 ${MARK}z` },
    h("title", `${minuteOf(fromMs + index * stepMs)}: ${text}`),
  );
}

/**
 * @param {number} value
 * @param {number} highest
 */
function heightOf(value, highest) {
  return highest === 0 ? 0 : ((HEIGHT - MARK - 3) * value) / highest;
}

/**
 * @param {readonly (number | null)[]} values
 * @param {number} highest
 */
function columnsOf(values, highest) {
  const width = WIDTH / values.length;
  return values
    .map((value, index) => {
      const height = heightOf(value ?? 0, highest);
      return height === 0
        ? ""
        : `M${(index * width).toFixed(1)} ${HEIGHT}v-${height.toFixed(1)}h${(width * 0.85).toFixed(1)}v${height.toFixed(1)}z`;
    })
    .join("");
}

/**
 * A line through the middle of each step, broken at gaps. A single value is a short dash.
 *
 * @param {readonly (number | null)[]} values
 * @param {number} highest
 */
function lineOf(values, highest) {
  const width = WIDTH / values.length;
  let isDrawing = false;
  return values
    .map((value, index) => {
      if (value === null) {
        isDrawing = false;
        return "";
      }
      const at = `${((index + 0.5) * width).toFixed(1)} ${(HEIGHT - 1 - heightOf(value, highest)).toFixed(1)}`;
      const piece = isDrawing ? `L${at}` : `M${at}h0.1`;
      isDrawing = true;
      return piece;
    })
    .join("");
}

/** Step at which dragging began; null if nothing is being chosen. */
let began = /** @type {number | null} */ (null);

/**
 * Handlers that choose a stretch: a click chooses one step, dragging several.
 *
 * @param {Axis} axis
 * @param {(from: number, to: number) => string} stretch
 */
function choosing({ fromMs, stepMs, count }, stretch) {
  /** @param {PointerEvent & { readonly currentTarget: HTMLElement }} event */
  const stepAt = ({ clientX, currentTarget }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return Math.min(count - 1, Math.max(0, Math.floor(((clientX - left) / width) * count)));
  };
  /** @type {(plot: HTMLElement, first: number, last: number) => void} */
  const show = (plot, first, last) => {
    const rect = plot.querySelector(".chosen");
    rect?.setAttribute("x", String((first * WIDTH) / count));
    rect?.setAttribute("width", String(((last - first) * WIDTH) / count));
  };
  return {
    /** @param {PointerEvent & { readonly currentTarget: HTMLElement }} event */
    onpointerdown: (event) => {
      began = stepAt(event);
      event.currentTarget.setPointerCapture(event.pointerId);
      show(event.currentTarget, began, began + 1);
    },
    /** @param {PointerEvent & { readonly currentTarget: HTMLElement }} event */
    onpointermove: (event) => {
      if (began === null) return;
      const at = stepAt(event);
      show(event.currentTarget, Math.min(began, at), Math.max(began, at) + 1);
    },
    /** @param {PointerEvent & { readonly currentTarget: HTMLElement }} event */
    onpointerup: (event) => {
      if (began === null) return;
      const at = stepAt(event);
      const [first, last] = [Math.min(began, at), Math.max(began, at) + 1];
      began = null;
      show(event.currentTarget, 0, 0);
      location.hash = stretch(fromMs + first * stepMs, fromMs + last * stepMs);
    },
    onpointercancel: () => {
      began = null;
    },
  };
}
