import { h } from "./dom.js";
import { wordsOf } from "./formats.js";

/** The road of every transaction. The names are those of the code, the metrics and the history. */
export const STAGES = ["create", "allocate", "sign", "broadcast", "receipt", "finality", "complete"];

const TRACKING = { PENDING: 3, BROADCAST: 4, STALE: 4, UNKNOWN_SUBMIT_RESULT: 3, MINED: 5 };

/** Ends that somebody asked for, and that worked: a nonce that was used up without effect is no failure. */
const CLOSED = ["CANCELLED", "EXPIRED"];

/** How many stages lie behind it, and how it fares: "moving", "done", "closed", "failed" or "stuck". */
export function progressOf({ state, subState, nonce }) {
  switch (state) {
    case "CREATED":
      return { passed: 1, mood: subState === "AWAITING_APPROVAL" ? "waiting" : "moving" };
    case "ALLOCATED":
      return { passed: 2, mood: "moving" };
    case "TRACKING":
      return { passed: TRACKING[subState] ?? 3, mood: "moving" };
    case "CONFIRMED":
      return { passed: STAGES.length, mood: subState === "REPLACED" ? "closed" : "done" };
    case "STUCK":
      return { passed: 4, mood: "stuck" };
    case "REORGED":
      return { passed: 4, mood: "waiting" };
    default:
      // Refused before it had a nonce: the road ended right at the beginning.
      return { passed: nonce === null ? 1 : STAGES.length, mood: CLOSED.includes(subState) ? "closed" : "failed" };
  }
}

/** The stage it is in now: the first that is not behind it. A transaction in an end state is in completion. */
export function stageOf(transaction) {
  const { passed, mood } = progressOf(transaction);
  return mood === "failed" || mood === "closed" ? "complete" : STAGES[Math.min(passed, STAGES.length - 1)];
}

/** State, and how far it has come or why it ended. */
export function stateOf(transaction) {
  const { state, subState } = transaction;
  return h(
    "span",
    { class: `state ${progressOf(transaction).mood}` },
    h("b", {}, wordsOf(state)),
    subState === null ? null : h("small", {}, wordsOf(subState)),
  );
}

/** Seven pickets: those passed stand, the next one is being driven in. */
export function fenceOf(transaction) {
  const { passed, mood } = progressOf(transaction);
  const posts = STAGES.map((_, index) => h("span", { class: postClass(index, passed, mood) }));
  const label = `${Math.min(passed, STAGES.length)} of ${STAGES.length} stages passed, now: ${stageOf(transaction)}`;
  return h("span", { class: `fence ${mood}`, role: "img", "aria-label": label }, posts);
}

function postClass(index, passed, mood) {
  if (index < passed) return "post passed";
  return index === passed && mood !== "failed" && mood !== "closed" ? "post next" : "post";
}

/** The steps of a history that end each stage; creation is over when there is a row. */
const ENDS = {
  allocate: ["allocate"],
  sign: ["sign"],
  broadcast: ["broadcast", "adopt"],
  receipt: ["mine"],
};

/**
 * How long each stage took, in order, in milliseconds; null for one that is not over. Of the receipt the last counts, since a
 * reorg may withdraw one; what a node had before it was noted as sent took no time.
 */
export function stageDurations({ createdAt, history: steps, receipt, confirmedAt, updatedAt, state }) {
  const history = steps ?? [];
  const isOver = state === "CONFIRMED" || state === "FAILED_FINAL";
  const over = isOver ? (confirmedAt ?? updatedAt) : null;
  const last = (events) => history.findLast(({ event }) => events.includes(event))?.firstAt ?? null;
  const ends = [
    createdAt,
    last(ENDS.allocate),
    history.find(({ event }) => ENDS.sign.includes(event))?.firstAt ?? null,
    history.find(({ event }) => ENDS.broadcast.includes(event))?.firstAt ?? null,
    receipt === null ? null : last(ENDS.receipt),
    over,
    over,
  ];
  let before = Date.parse(createdAt);
  return ends.map((end) => {
    if (end === null) return null;
    const took = Math.max(0, Date.parse(end) - before);
    before = Math.max(before, Date.parse(end));
    return took;
  });
}
