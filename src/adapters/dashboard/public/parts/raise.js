/**
 * Bulk action: raises every transaction of a lane whose fee cap is below the base fee. It uses the ordinary reprice
 * action, one transaction after the other, so that the node's ceilings and policies apply to each.
 *
 * @import { Attempt, Chain, SignerLane, Transaction } from "../../page-types.ts"
 */
import { failureOf, randomId, readApi, sendApi } from "../api.js";
import { dialogById, draw, h } from "../dom.js";
import { exactOf, GWEI_DIGITS, plural, weiOf } from "../formats.js";
import { chainOf, may } from "../world.js";
import { cell, gwei, quiet, said, table } from "./words.js";

/** Most transactions of one lane and state that are considered. */
const MOST = 1_000;
const GWEI = "[0-9]+([.][0-9]{1,9})?";

/**
 * One transaction to raise: its newest attempt, and the result once it was sent.
 *
 * @typedef {{ readonly transaction: Transaction, readonly attempt: Attempt, result: "waiting" | "sending" | "raised" | { readonly refused: string } }} Raise
 */

/**
 * The open dialog. `isOver`: nothing more is sent.
 *
 * @typedef {{
 *   readonly lane: SignerLane, readonly market: Chain, readonly key: string, readonly onDone: () => void,
 *   raises: Raise[] | null, cap: string, tip: string, reason: string, problem: string | null,
 *   phase: "asking" | "sending" | "stopping" | "over",
 * }} Open
 */

/** @type {Open | null} */
let open = null;

/**
 * Button of the bulk action; null if the key may not, nothing is pending, or the base fee is not known.
 *
 * @param {SignerLane} lane
 * @param {() => void} onDone
 */
export function raiseButton(lane, onDone) {
  const market = chainOf(lane.chainId);
  if (!may("operate") || lane.pending + lane.stuck === 0 || market === null || market.baseFee === null) return null;
  const onclick = () => void openRaise(lane, market, onDone);
  return h("button", { key: "raise", type: "button", onclick }, "Raise all below the base fee");
}

/**
 * @param {SignerLane} lane
 * @param {Chain} market
 * @param {() => void} onDone
 */
async function openRaise(lane, market, onDone) {
  const tip = BigInt(market.tip ?? "0");
  // Twice the base fee stays valid for six full blocks (EIP-1559 raises it by at most an eighth each).
  const cap = 2n * BigInt(market.baseFee ?? "0") + tip;
  const given = { cap: exactOf(String(cap), GWEI_DIGITS), tip: exactOf(String(tip), GWEI_DIGITS), reason: "" };
  const states = /** @type {const} */ ({ raises: null, problem: null, phase: "asking" });
  /** @type {Open} */
  const mine = { lane, market, onDone, key: `dashboard-${randomId()}`, ...given, ...states };
  open = mine;
  show();
  dialogById("raise-dialog").showModal();
  try {
    mine.raises = await raisesOf(lane, BigInt(market.baseFee ?? "0"));
  } catch (error) {
    mine.problem = failureOf(error).message;
  }
  if (open === mine) show();
}

/**
 * Transactions of the lane that are signed, not mined, and offer less than the base fee: lowest nonce first.
 *
 * @param {SignerLane} lane
 * @param {bigint} baseFee
 */
async function raisesOf({ signer, chainId }, baseFee) {
  const query = { signer, chainId, order: /** @type {const} */ ("oldest"), limit: MOST };
  const pages = await Promise.all([
    readApi("/tx", { query: { ...query, state: "STUCK" } }),
    readApi("/tx", { query: { ...query, state: "TRACKING" } }),
  ]);
  // A transaction may change its state between the two reads, and then be in both.
  const each = new Map(pages.flatMap(({ items }) => items).map((item) => [item.txId, item]));
  const all = [...each.values()].sort((a, b) => (a.nonce ?? 0) - (b.nonce ?? 0));
  return all.flatMap((transaction) => {
    const attempt = transaction.attempts.at(-1);
    const isOpen = transaction.receipt === null && transaction.heldSince === null;
    if (!isOpen || attempt === undefined || offeredBy(attempt) >= baseFee) return [];
    return [/** @type {Raise} */ ({ transaction, attempt, result: "waiting" })];
  });
}

/** @param {Attempt} attempt */
function offeredBy({ maxFeePerGas, gasPrice }) {
  return BigInt(maxFeePerGas ?? gasPrice ?? "0");
}

/** @param {bigint} wei */
function tenthMore(wei) {
  return (wei * 11n + 9n) / 10n;
}

/** @param {bigint[]} values */
function most(...values) {
  return values.reduce((highest, value) => (value > highest ? value : highest), 0n);
}

/**
 * Fees of the new attempt: those of the dialog, and at least a tenth more than the attempt that it replaces offers.
 *
 * @param {Open} dialog
 * @param {Attempt} attempt
 */
export function raisedFees({ cap, tip }, attempt) {
  const price = most(wei(cap), tenthMore(offeredBy(attempt)));
  if (attempt.maxFeePerGas === undefined) return { gasPrice: String(price) };
  const reward = most(wei(tip), tenthMore(BigInt(attempt.maxPriorityFeePerGas ?? "0")));
  return { maxFeePerGas: String(most(price, reward)), maxPriorityFeePerGas: String(reward) };
}

/** @param {string} text */
function wei(text) {
  return new RegExp(`^(?:${GWEI})$`).test(text) ? BigInt(weiOf(text, GWEI_DIGITS)) : 0n;
}

/**
 * Most that the new attempt can cost, without its value.
 *
 * @param {Open} dialog
 * @param {Attempt} attempt
 */
function worstOf(dialog, attempt) {
  const { gasPrice, maxFeePerGas = gasPrice ?? "0" } = raisedFees(dialog, attempt);
  return BigInt(maxFeePerGas) * BigInt(attempt.gas);
}

function show() {
  const mine = open;
  if (mine === null) return;
  const { raises, phase, problem } = mine;
  const count = raises?.length ?? 0;
  draw(
    dialogById("raise-dialog"),
    h(
      "form",
      { key: mine.key, method: "dialog", onsubmit: start, oninput: note },
      h("h2", { id: "raise-title" }, "Raise all below the base fee"),
      h(
        "p",
        "Signs each of them again at its nonce for more, one after the other. Ceilings and policies of the node apply; every attempt stays tracked.",
      ),
      raises === null
        ? h("p.quiet", problem === null ? "Reading the lane…" : "")
        : count === 0
          ? h(
              "p.preview",
              "Nothing of this lane offers less than the base fee of ",
              gwei(mine.market.baseFee ?? "0"),
              " gwei.",
            )
          : preview(mine, raises),
      count === 0 ? null : fields(mine),
      h("p.result.bad", { role: "alert" }, problem ?? ""),
      h("p.result", { role: "status" }, phase === "asking" ? "" : progress(raises ?? [], phase)),
      h("div.buttons", buttons(mine, count)),
    ),
  );
}

/**
 * @param {Open} mine
 * @param {number} count
 */
function buttons({ phase }, count) {
  const close = h("button.plain", { type: "button", onclick: leave }, phase === "over" ? "Close" : "Back");
  if (phase === "sending" || phase === "stopping") {
    const text = phase === "stopping" ? "Stopping…" : "Stop after this one";
    return h("button.danger", { type: "button", disabled: phase === "stopping", onclick: stop }, text);
  }
  if (phase === "over" || count === 0) return close;
  return [close, h("button.solid", { type: "submit" }, `Raise ${plural(count, "transaction")}`)];
}

/** @param {Open} mine */
function fields({ cap, tip, phase }) {
  const isFixed = phase !== "asking";
  const common = { required: true, pattern: GWEI, inputmode: "decimal", autocomplete: "off", disabled: isFixed };
  return [
    h(
      "div.pair",
      h("label", "At most, gwei ", h("input", { name: "cap", initially: cap, ...common })),
      h("label", "Tip, gwei ", h("input", { name: "tip", initially: tip, ...common })),
    ),
    h(
      "label",
      "Reason ",
      h("textarea", { name: "reason", required: true, rows: "2", maxlength: "1000", disabled: isFixed }),
    ),
  ];
}

/**
 * @param {Open} mine
 * @param {readonly Raise[]} raises
 */
function preview(mine, raises) {
  const worst = raises.reduce((sum, { attempt }) => sum + worstOf(mine, attempt), 0n);
  const rows = raises.map(({ transaction, attempt, result }) => {
    const { gasPrice, maxFeePerGas = gasPrice ?? "0" } = raisedFees(mine, attempt);
    return h(
      "tr",
      { key: transaction.txId },
      cell("right mono", String(transaction.nonce)),
      cell("right mono", gwei(String(offeredBy(attempt)))),
      cell("right mono", gwei(maxFeePerGas)),
      cell("right mono", exactOf(String(worstOf(mine, attempt)))),
      cell("", resultOf(result)),
    );
  });
  return [
    h(
      "p.preview",
      h("b", plural(raises.length, "transaction")),
      " below ",
      gwei(mine.market.baseFee ?? "0"),
      " gwei. Fees at most ",
      h("b", exactOf(String(worst))),
      " ether in all.",
    ),
    h(
      "div.raises",
      table(
        "Transactions to raise",
        [["Nonce", "right"], ["Offers, gwei", "right"], ["Then", "right"], ["At most, ether", "right"], ["Result"]],
        rows,
      ),
    ),
  ];
}

/** @param {Raise["result"]} result */
function resultOf(result) {
  if (typeof result === "object") return h("span.bad", said(result.refused, 200));
  return result === "raised" ? h("span.good", "raised") : quiet(result === "sending" ? "sending…" : "");
}

/**
 * @param {readonly Raise[]} raises
 * @param {Open["phase"]} phase
 */
function progress(raises, phase) {
  const raised = raises.filter(({ result }) => result === "raised").length;
  const refused = raises.filter(({ result }) => typeof result === "object").length;
  const left = raises.length - raised - refused;
  const text = `${raised} raised, ${refused} refused`;
  return phase === "over" ? `${text}${left === 0 ? "" : `, ${left} left as they are`}.` : `${text}, ${left} to go.`;
}

/** @param {{ readonly target: HTMLInputElement }} event */
function note({ target }) {
  if (open === null) return;
  Object.assign(open, { [target.name]: target.value.trim() });
  show();
}

function stop() {
  if (open?.phase === "sending") open.phase = "stopping";
  show();
}

function leave() {
  dialogById("raise-dialog").close();
}

/**
 * Sends the actions in order. Closing the dialog, or its stop button, ends it before the next one.
 *
 * @param {Event} event
 */
async function start(event) {
  event.preventDefault();
  const mine = open;
  if (mine === null || mine.raises === null || mine.phase !== "asking") return;
  mine.phase = "sending";
  for (const raise of mine.raises) {
    if (mine.phase !== "sending" || open !== mine || !dialogById("raise-dialog").open) break;
    raise.result = "sending";
    show();
    raise.result = await sendOne(mine, raise);
  }
  mine.phase = "over";
  if (open === mine) show();
  mine.onDone();
}

/**
 * @param {Open} mine
 * @param {Raise} raise
 * @returns {Promise<Raise["result"]>}
 */
async function sendOne(mine, { transaction: { txId }, attempt }) {
  const body = { reason: mine.reason, ...raisedFees(mine, attempt) };
  try {
    await sendApi({ method: "POST", path: `/api/v1/tx/${txId}/reprice`, body, key: `${mine.key}-${txId}` });
    return "raised";
  } catch (error) {
    const { status, message } = failureOf(error);
    return { refused: status === undefined ? "the node did not answer: it may have been raised" : message };
  }
}
