/** @import { Explanation, PageOf, Step, Transaction } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf, durationOf, exactOf, momentOf, plural, shortId, timeOf, visible, wordsOf } from "../formats.js";
import { actionsFor, actionsOf, wordOf } from "../parts/actions.js";
import { attemptsTable, marketNow } from "../parts/attempts.js";
import { explainedOf, explanation } from "../parts/explanation.js";
import { onChain } from "../parts/on-chain.js";
import { actionButtons, withheld } from "../parts/scopes.js";
import { feeOf } from "../parts/transaction-rows.js";
import {
  age,
  chainName,
  code,
  copyButton,
  explored,
  facts,
  gwei,
  laneLink,
  quiet,
  said,
  saidLines,
  section,
} from "../parts/words.js";
import { toLane } from "../routes.js";
import { progressOf, STAGES, stageDurations, stateOf } from "../stages.js";
import { chainOf } from "../world.js";

const MOVING_MS = 1_500;

/**
 * Page of one transaction: its state, the reason, its attempts and possible actions.
 *
 * @type {PageOf<{ readonly transaction: Transaction, readonly explained: Explanation }>}
 */
export const transactionPage = {
  title: (data) =>
    data === undefined
      ? "Transaction"
      : visible(data.transaction.requestId ?? shortId(data.transaction.txId)).slice(0, 60),

  async load({ route, signal }) {
    const params = { txId: route.parts[1] ?? "" };
    const transaction = await readApi("/tx/{txId}", { params, query: { include: "history" }, signal });
    const { txId, updatedAt, lastSubmittedAt } = transaction;
    return { transaction, explained: await explainedOf(txId, [updatedAt, lastSubmittedAt], signal) };
  },

  /** Reload an open transaction automatically; a final one is reloaded only on request. */
  everyMs: ({ transaction }) => (isOver(transaction) ? null : MOVING_MS),

  view({ transaction, explained }, { refresh }) {
    const baseFee = chainOf(transaction.chainId)?.baseFee ?? null;
    return [
      heading(transaction),
      road(transaction),
      explanation(explained, transaction, { baseFee, refresh }),
      others(transaction, explained, { baseFee, refresh }),
      h(
        "div.columns",
        h("div", about(transaction), call(transaction), outcome(transaction), onChain(transaction)),
        h(
          "div",
          section(
            "Attempts",
            { aside: marketNow(chainOf(transaction.chainId)) },
            attemptsTable(transaction, chainOf(transaction.chainId)),
          ),
          section("History", {}, timeline(transaction)),
        ),
      ),
    ];
  },
};

/** @param {Transaction} transaction */
function isOver({ state }) {
  return state === "CONFIRMED" || state === "FAILED_FINAL";
}

/** @param {Transaction} transaction */
function heading(transaction) {
  const { requestId, txId, heldSince } = transaction;
  return h(
    "div.title",
    h("h1", requestId === null ? code(shortId(txId)) : said(requestId, 120)),
    stateOf(transaction),
    heldSince !== null && h("span.tag", "held back for ", age(heldSince, "")),
  );
}

/**
 * Shows the stages of a transaction at full size, each with its duration.
 *
 * @param {Transaction} transaction
 */
function road(transaction) {
  const { passed, mood } = progressOf(transaction);
  const durations = stageDurations(transaction);
  const posts = STAGES.map((stage, index) => {
    const place = index < passed ? "passed" : index === passed && !isOver(transaction) ? "next" : "ahead";
    const took = durations[index];
    return h(
      "li",
      { class: place },
      h("span.post", { "aria-hidden": "true" }),
      h("span.stage", stage),
      h(
        "small",
        place === "next"
          ? "now"
          : place === "ahead" || took === null || took === undefined || index === 0
            ? " "
            : durationOf(took),
      ),
    );
  });
  return h("ol", { class: `road ${mood}`, "aria-label": "Stages" }, posts);
}

/**
 * Shows, behind one click, the actions that the explanation does not suggest.
 *
 * @param {Transaction} transaction
 * @param {Explanation} explained
 * @param {{ readonly baseFee: string | null, readonly refresh: () => void }} context
 */
function others(transaction, explained, { baseFee, refresh }) {
  const offered = new Set(actionsOf(explained).map(wordOf));
  const rest = actionsFor(transaction).filter((action) => !offered.has(wordOf(action)));
  const buttons = actionButtons(rest, { transaction, baseFee }, refresh);
  if (buttons.length === 0) return withheld(rest, { transaction });
  return h("details.others", h("summary", "More actions"), h("div.buttons", buttons));
}

/** @param {Transaction} transaction */
function about(transaction) {
  const { txId, txHash, chainId, signer, nonce, owner, createdAt, validUntil, submitAttempts, nextResubmitAt } =
    transaction;
  return section(
    "Transaction",
    { name: "facts" },
    facts({
      Id: [code(txId), " ", copyButton(txId, "the id")],
      Hash:
        txHash === null
          ? quiet("none yet")
          : [explored(chainId, "tx", txHash, code(txHash)), " ", copyButton(txHash, "the hash")],
      Lane: [
        laneLink(chainId, signer),
        " ",
        chainName(chainId),
        " · ",
        nonce === null
          ? "no nonce yet"
          : h("a", { href: toLane(chainId, signer, { at: nonce }) }, `nonce ${countOf(nonce)}`),
      ],
      Created: [momentOf(createdAt), owner === null ? null : [" by the key ", said(owner, 64)]],
      "Valid until": validUntil === null ? null : momentOf(validUntil),
      Sent: [
        plural(submitAttempts, "time"),
        nextResubmitAt === null || isOver(transaction) ? null : `, again at ${timeOf(nextResubmitAt)}`,
      ],
    }),
  );
}

/** @param {Transaction} transaction */
function call({ chainId, payload, decoded: known, gas, metadata }) {
  const { to, value, data } = payload;
  return section(
    "Payload",
    {},
    facts({
      To: to === null ? "a new contract" : explored(chainId, "address", to, code(to)),
      Value: [code(exactOf(value)), " ether ", copyButton(exactOf(value), "the value")],
      "Gas limit": gas === null ? null : countOf(Number(gas)),
      Call: known === undefined ? null : decoded(known),
      Data: data === "0x" ? null : dataOf(data),
      Metadata:
        metadata === null
          ? null
          : h("pre", { tabindex: "0", "aria-label": "Metadata" }, saidLines(JSON.stringify(metadata, null, 1))),
    }),
  );
}

/** @param {NonNullable<Transaction["decoded"]>} call */
function decoded({ contract, name, args }) {
  return [
    h("b", contract === null ? null : [said(contract, 60), "."], said(name, 60)),
    h(
      "ul.args",
      args.map((arg) => h("li", quiet(said(arg.name, 60), " "), code(arg.value))),
    ),
  ];
}

/** @param {string} data */
function dataOf(data) {
  const bytes = plural((data.length - 2) / 2, "byte");
  return h(
    "details",
    h("summary", bytes, " ", code(data.slice(0, 10))),
    h("pre.bytes", { tabindex: "0", "aria-label": "Data" }, data),
  );
}

/**
 * Texts for final transactions whose nonce was used by something other than the caller's payload.
 *
 * @type {Readonly<Record<string, string>>}
 */
const ENDINGS = {
  CANCELLED: ", used without effect",
  EXPIRED: ", used without effect",
  REPLACED: ", of another payload at this nonce",
  NONCE_CONSUMED_EXTERNALLY: ", of another program's transaction",
};

/** @param {Transaction} transaction */
function outcome({ chainId, receipt, lastError, subState }) {
  const failed = lastError === null ? null : h("span.bad", said(lastError));
  if (receipt === null) return section("Receipt", {}, facts({ Mined: "not yet", "Last error": failed }));
  const { status, verified, blockNumber, transactionIndex, gasUsed, effectiveGasPrice, contractAddress } = receipt;
  const fee = feeOf({ receipt });
  const isPlain = verified === false || subState === "NONCE_CONSUMED_EXTERNALLY";
  return section(
    "Receipt",
    {},
    facts({
      Status: h(
        "span",
        { class: isPlain ? null : status === "success" ? "good" : "bad" },
        status,
        ENDINGS[subState ?? ""] ?? "",
        verified === false && quiet(", one endpoint's word until it is final"),
      ),
      Block: [explored(chainId, "block", String(blockNumber), countOf(blockNumber)), quiet(`, at ${transactionIndex}`)],
      "Gas used": countOf(Number(gasUsed)),
      Paid:
        fee === null || effectiveGasPrice === null
          ? null
          : [code(exactOf(fee.toString())), " ether, ", gwei(effectiveGasPrice), " gwei a gas"],
      Contract: contractAddress === null ? null : explored(chainId, "address", contractAddress, code(contractAddress)),
      "Last error": failed,
    }),
  );
}

/**
 * History of a transaction: actor, action, fencing token, and the time since the step before.
 *
 * @param {Transaction} transaction
 */
function timeline({ history = [] }) {
  /** @type {number | null} */
  let before = null;
  const steps = history.map((step) => {
    const since = before === null ? null : Date.parse(step.firstAt) - before;
    before = Date.parse(step.firstAt);
    return entry(step, since);
  });
  return h("ol.timeline", steps);
}

/**
 * @param {Step} step
 * @param {number | null} since
 */
function entry(
  { ordinal, event, state, subState, nodeId, fencingToken, actor, reason, audit, count, firstAt, lastAt },
  since,
) {
  return h(
    "li",
    { key: ordinal },
    h("time", { datetime: firstAt, title: momentOf(firstAt) }, timeOf(firstAt)),
    h(
      "div",
      h("b", wordsOf(event.replaceAll(/([A-Z])/g, " $1"))),
      count > 1 && h("span.tag", `${countOf(count)} times, last ${timeOf(lastAt)}`),
      " ",
      quiet(wordsOf(state), subState === null ? null : `, ${wordsOf(subState)}`),
      actor !== null && h("p", "decided by ", said(actor, 100)),
      reason !== null && h("p.reason", said(reason)),
      audit !== null && h("p.reason", said(JSON.stringify(audit), 500)),
    ),
    h("span.by", nodeId !== null && [said(nodeId, 40), fencingToken === null ? null : `, token ${fencingToken}`]),
    h("span.took", since === null ? "" : `+${durationOf(Math.max(0, since))}`),
  );
}
