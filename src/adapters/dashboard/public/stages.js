/** @import { Completion, Mood, Transaction } from "../page-types.ts" */
import { h } from "./dom.js";
import { wordsOf } from "./formats.js";

/**
 * A transaction or an item of the feed.
 *
 * @typedef {Pick<Transaction, "subState" | "nonce"> & { readonly state: Transaction["state"] | Completion["state"] }} Stated
 */

/** Stages of a transaction, named as in the code, the metrics and the history. */
export const STAGES = ["create", "allocate", "sign", "broadcast", "receipt", "finality", "complete"];

/** @type {Readonly<Record<string, number>>} */
const TRACKING = { PENDING: 3, BROADCAST: 4, STALE: 4, UNKNOWN_SUBMIT_RESULT: 3, MINED: 5 };

/**
 * Final sub-states that are intended, not failures: the nonce was used by a transaction without effect.
 *
 * @type {readonly (string | null)[]}
 */
const CLOSED = ["CANCELLED", "EXPIRED"];

/**
 * Number of stages that a transaction has completed, and its condition: "moving", "done", "closed", "failed" or
 * "stuck".
 *
 * @param {Stated} transaction
 * @returns {{ readonly passed: number, readonly mood: Mood }}
 */
export function progressOf({ state, subState, nonce }) {
  switch (state) {
    case "CREATED":
      return { passed: 1, mood: subState === "AWAITING_APPROVAL" ? "waiting" : "moving" };
    case "ALLOCATED":
      return { passed: 2, mood: "moving" };
    case "TRACKING":
      return { passed: TRACKING[subState ?? ""] ?? 3, mood: "moving" };
    case "CONFIRMED":
      return { passed: STAGES.length, mood: subState === "REPLACED" ? "closed" : "done" };
    case "REORGED":
      return { passed: 4, mood: "waiting" };
    case "STUCK":
      return { passed: 4, mood: "stuck" };
    default:
      // A failed transaction without a nonce was refused before allocation, so only its first stage counts as passed.
      return { passed: nonce === null ? 1 : STAGES.length, mood: CLOSED.includes(subState) ? "closed" : "failed" };
  }
}

/**
 * Current stage of a transaction: the first that is not completed. For a final transaction it is `complete`.
 *
 * @param {Stated} transaction
 */
export function stageOf(transaction) {
  const { passed, mood } = progressOf(transaction);
  return mood === "failed" || mood === "closed" ? "complete" : STAGES[Math.min(passed, STAGES.length - 1)];
}

/**
 * State of a transaction, with its sub-state or the reason of its end.
 *
 * @param {Stated} transaction
 */
export function stateOf(transaction) {
  const { state, subState } = transaction;
  return h(
    "span",
    { class: `state ${progressOf(transaction).mood}` },
    h("b", wordsOf(state)),
    subState !== null && h("small", wordsOf(subState)),
  );
}

/**
 * Draws a transaction's progress as seven marks, one per stage, with the current stage highlighted.
 *
 * @param {Transaction} transaction
 */
export function fenceOf(transaction) {
  const { passed, mood } = progressOf(transaction);
  const posts = STAGES.map((_, index) => h("span", { class: postClass(index, passed, mood) }));
  const label = `${Math.min(passed, STAGES.length)} of ${STAGES.length} stages passed, now: ${stageOf(transaction)}`;
  return h("span", { class: `fence ${mood}`, role: "img", "aria-label": label }, posts);
}

/**
 * @param {number} index
 * @param {number} passed
 * @param {Mood} mood
 */
function postClass(index, passed, mood) {
  if (index < passed) return "post passed";
  return index === passed && mood !== "failed" && mood !== "closed" ? "post next" : "post";
}

/** History steps that end each stage; the stage `create` ends when the row is inserted. */
const ENDS = {
  allocate: ["allocate"],
  sign: ["sign"],
  broadcast: ["broadcast", "adopt"],
  receipt: ["mine"],
};

/**
 * Duration of each stage in milliseconds, in order; null if the stage has not ended. The last receipt counts, because a
 * reorg may withdraw an earlier one. If the receipt is older than the recorded send, the duration is zero.
 *
 * @param {Transaction} transaction
 */
export function stageDurations({ createdAt, history: steps, receipt, confirmedAt, updatedAt, state }) {
  const history = steps ?? [];
  const isOver = state === "CONFIRMED" || state === "FAILED_FINAL";
  const over = isOver ? (confirmedAt ?? updatedAt) : null;
  /** @param {readonly string[]} events */
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
