import { h } from "./dom.js";

/** The road of every transaction. The names are those of the code, the metrics and the history. */
export const STAGES = ["create", "allocate", "sign", "broadcast", "receipt", "finality", "complete"];

const TRACKING = { PENDING: 3, BROADCAST: 4, STALE: 4, UNKNOWN_SUBMIT_RESULT: 3, MINED: 5 };

/** How many stages lie behind it, and how it fares: "moving", "done", "failed" or "stuck". */
export function progressOf({ state, subState, nonce }) {
  switch (state) {
    case "CREATED":
      return { passed: 1, mood: "moving" };
    case "ALLOCATED":
      return { passed: 2, mood: "moving" };
    case "TRACKING":
      return { passed: TRACKING[subState] ?? 3, mood: "moving" };
    case "CONFIRMED":
      return { passed: STAGES.length, mood: "done" };
    case "STUCK":
      return { passed: 4, mood: "stuck" };
    default:
      // Refused before it had a nonce: the road ended right at the beginning.
      return { passed: nonce === null ? 1 : STAGES.length, mood: "failed" };
  }
}

/** The stage it is in now: the first that is not behind it. A transaction in an end state is in completion. */
export function stageOf(transaction) {
  const { passed, mood } = progressOf(transaction);
  return mood === "failed" ? "complete" : STAGES[Math.min(passed, STAGES.length - 1)];
}

/** State, and under it how far or why. */
export function stateOf({ state, subState }, mood) {
  return h("span", { class: `state ${mood}` }, state, subState === null ? null : h("small", {}, subState));
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
  return index === passed && mood !== "failed" ? "post next" : "post";
}

/** The same fence as a legend: each stage with how many of the listed transactions are in it. */
export function pipelineOf(transactions) {
  const counts = new Map(STAGES.map((stage) => [stage, 0]));
  for (const transaction of transactions) {
    const stage = stageOf(transaction);
    counts.set(stage, (counts.get(stage) ?? 0) + 1);
  }
  return STAGES.map((stage) => {
    const count = counts.get(stage) ?? 0;
    return h(
      "li",
      { class: count === 0 ? "idle" : stage === "complete" ? "done" : "busy" },
      h("span", { class: "count" }, String(count)),
      h("span", { class: "post passed" }),
      h("span", { class: "stage" }, stage),
    );
  });
}
