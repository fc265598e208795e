/**
 * Details shown to an approver: receiver, amount, call, the rule that requires approval, and the highest possible cost.
 *
 * @import { Transaction } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { exactOf, plural } from "../formats.js";
import { code, explored, facts, left, quiet, said } from "./words.js";

/** @param {Pick<Transaction, "state" | "subState">} transaction */
export function isAwaiting({ state, subState }) {
  return state === "CREATED" && subState === "AWAITING_APPROVAL";
}

/** @param {Transaction} transaction */
export function approvalFacts({ chainId, owner, payload, decoded, approval }) {
  const { to, value, data } = payload;
  return facts({
    To: to === null ? "a new contract" : explored(chainId, "address", to, code(to)),
    Amount: h("b", `${exactOf(value)} ether`),
    Call: callOf(data, decoded),
    "Asked for by": owner === null ? quiet("no API key") : ["the key ", said(owner, 64)],
    Rule: approval === undefined ? quiet("not known") : said(approval.rule, 200),
    "Worst cost": worstOf(approval),
    Time: approval === undefined ? null : left(approval.expiresAt),
  });
}

/**
 * Details of a pending approval in one line, for table rows.
 *
 * @param {Transaction} transaction
 */
export function approvalLine({ payload: { to, value, data }, decoded: known, approval }) {
  return h(
    "span.approval",
    // A wide list has columns for these three, and hides them here.
    h(
      "span.whole",
      h("b", `${exactOf(value)} ether`),
      " to ",
      // Show the receiver's address in full: a shortened address could belong to another account.
      to === null ? "a new contract" : code(to),
      data !== "0x" && [", ", known === undefined ? unknownCall(data) : signed(known)],
      ", ",
    ),
    approval === undefined ? "by a rule that is not known" : ["by ", said(approval.rule, 120)],
    approval?.worstCost ? `, at most ${exactOf(approval.worstCost)} ether in all` : null,
  );
}

/**
 * @param {string} data
 * @param {Transaction["decoded"]} known
 */
function callOf(data, known) {
  if (data === "0x") return "none: a transfer of ether";
  if (known === undefined) return unknownCall(data);
  return [
    h("b", said(known.name, 60)),
    h(
      "ul.args",
      known.args.map((arg) => h("li", quiet(said(arg.name, 60), " "), code(arg.value))),
    ),
  ];
}

/** @param {NonNullable<Transaction["decoded"]>} call */
function signed({ name, args }) {
  return [h("b", said(name, 60)), "(", args.map((arg, index) => [index === 0 ? "" : ", ", code(arg.value)]), ")"];
}

/** @param {string} data */
function unknownCall(data) {
  const bytes = plural((data.length - 2) / 2, "byte");
  return [h("span.bad", "a call that no ABI explains"), ": ", code(data.slice(0, 10)), ` and ${bytes} in all`];
}

/** @param {Transaction["approval"]} approval */
function worstOf(approval) {
  if (!approval?.worstCost) return quiet("not known: this node does not serve the chain");
  return [h("b", `${exactOf(approval.worstCost)} ether`), quiet(" with gas, by the ceilings in force")];
}
