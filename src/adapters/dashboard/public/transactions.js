import { callApi, hasKey } from "./api.js";
import { agoOf, byId, etherOf, gweiOf, h, hexOf, plural, shortHex, timeOf } from "./dom.js";
import { fenceOf, pipelineOf, progressOf, stateOf } from "./stages.js";

const LIMIT = 30;
/** txId → its list item and what it showed last: only what changed is drawn again, so an open row stays open. */
const rows = new Map();

export async function refreshTransactions(lanes) {
  const { items, next } = await callApi(`/tx?order=newest&limit=${LIMIT}`);
  byId("pipeline").replaceChildren(...pipelineOf(items));
  byId("transactions-count").textContent =
    items.length === 0 ? "" : next === null ? plural(items.length, "transaction") : `the ${items.length} newest`;
  showEmptyState(items.length === 0, lanes);
  removeGone(new Set(items.map(({ txId }) => txId)));
  const list = byId("transaction-list");
  items.forEach((transaction, index) => {
    const element = rowOf(transaction);
    if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null);
  });
}

/** Ages pass without anybody asking the node. */
export function tickAges() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-ago]")) time.textContent = agoOf(time.dateTime, now);
}

function removeGone(present) {
  for (const [txId, { element }] of rows) {
    if (present.has(txId)) continue;
    element.remove();
    rows.delete(txId);
  }
}

function rowOf(transaction) {
  const shown = JSON.stringify(transaction);
  const known = rows.get(transaction.txId);
  if (known?.shown === shown) return known.element;
  const row = known ?? newRow(transaction.txId);
  row.shown = shown;
  row.summary.replaceChildren(...summaryOf(transaction));
  if (row.details.open) void showDetail(row, transaction.txId);
  return row.element;
}

function newRow(txId) {
  const summary = h("summary");
  const body = h("div", { class: "detail" });
  const details = h("details", {}, summary, body);
  const row = {
    element: h("li", { class: "transaction", "data-tx": txId }, details),
    details,
    summary,
    body,
    shown: "",
  };
  details.addEventListener("toggle", () => {
    if (details.open) void showDetail(row, txId);
  });
  rows.set(txId, row);
  return row;
}

function summaryOf(transaction) {
  const { nonce, signer, requestId, txId, txHash, createdAt, attempts } = transaction;
  return [
    fenceOf(transaction),
    stateOf(transaction, progressOf(transaction).mood),
    h(
      "span",
      { class: "who", title: requestId ?? txId },
      requestId ?? shortHex(txId),
      h("small", {}, h("time", { datetime: createdAt, "data-ago": true }, agoOf(createdAt, Date.now()))),
    ),
    h("span", { class: "nonce" }, nonce === null ? "none" : String(nonce), h("small", {}, "nonce")),
    h(
      "span",
      { class: "hash" },
      hexOf(txHash),
      h("small", {}, attempts.length > 1 ? `${attempts.length} attempts` : "hash"),
    ),
    h("span", { class: "signer" }, hexOf(signer), h("small", {}, "signer")),
  ];
}

async function showDetail(row, txId) {
  try {
    const transaction = await callApi(`/tx/${txId}?include=history`);
    row.body.replaceChildren(...detailOf(transaction));
  } catch (error) {
    row.body.replaceChildren(h("p", { class: "result bad" }, error.message));
  }
}

function detailOf(transaction) {
  const { payload, receipt, lastError } = transaction;
  const call = payload.data === "0x" ? "" : `, ${plural((payload.data.length - 2) / 2, "byte")} of data`;
  return [
    h(
      "dl",
      { class: "facts" },
      fact("Transaction", h("code", {}, transaction.txId)),
      fact("Hash", hexWhole(transaction.txHash)),
      fact("From", h("code", {}, transaction.signer)),
      fact("To", payload.to === null ? "a new contract" : h("code", {}, payload.to)),
      fact("Value", `${etherOf(payload.value)} ether${call}`),
      fact("Receipt", receipt === null ? "not mined yet" : receiptText(receipt)),
      lastError === null ? [] : fact("Last error", h("span", { class: "bad" }, lastError)),
    ),
    h("h3", {}, "Attempts"),
    attemptsTable(transaction),
    h("h3", {}, "History"),
    historyList(transaction.history ?? []),
  ];
}

function hexWhole(hex) {
  return hex === null ? "none yet" : h("code", {}, hex);
}

function fact(name, value) {
  return [h("dt", {}, name), h("dd", {}, value)];
}

function receiptText({ status, blockNumber, gasUsed }) {
  return `${status} in block ${blockNumber.toLocaleString("en")}, ${Number(gasUsed).toLocaleString("en")} gas`;
}

function attemptsTable({ attempts, receipt }) {
  if (attempts.length === 0) return h("p", { class: "quiet" }, "Nothing is signed yet.");
  const rows = attempts.map((attempt) =>
    h(
      "tr",
      { class: attempt.txHash === receipt?.txHash ? "mined" : null },
      h("td", {}, String(attempt.ordinal)),
      h("td", {}, attempt.kind),
      h("td", {}, hexOf(attempt.txHash)),
      h("td", {}, `${gweiOf(attempt.maxFeePerGas ?? attempt.gasPrice)} gwei`),
      h("td", {}, attempt.firstSentAt === null ? "not sent" : timeOf(attempt.firstSentAt)),
    ),
  );
  const columns = ["#", "kind", "hash", "fee cap", "first sent"].map((name) => h("th", { scope: "col" }, name));
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, columns)), h("tbody", {}, rows)));
}

function historyList(history) {
  const entries = history.map(({ event, state, subState, reason, count, lastAt }) =>
    h(
      "li",
      { class: "step" },
      h("time", { class: "quiet", datetime: lastAt }, timeOf(lastAt)),
      h("span", { class: "event" }, count > 1 ? `${event} ×${count}` : event),
      h("span", { class: "quiet" }, subState === null ? state : `${state} / ${subState}`),
      reason === null ? null : h("span", { class: "reason" }, reason),
    ),
  );
  return h("ol", {}, entries);
}

function showEmptyState(empty, lanes) {
  const element = byId("transactions-empty");
  element.hidden = !empty;
  if (!empty) return;
  const [from, to = from] = lanes;
  if (from === undefined)
    return element.replaceChildren(h("p", {}, "No transaction yet, and no signer to send one from."));
  const body = JSON.stringify({ signer: from.signer, payload: { to: to.signer, value: "1000000000000000" } });
  const key = hasKey() ? '  -H "authorization: Bearer $FENCEPOST_API_KEY" \\\n' : "";
  const url = new URL("api/v1/tx", document.baseURI);
  const command = `curl -X POST ${url} \\\n${key}  -H "content-type: application/json" \\\n  -d '${body}'`;
  element.replaceChildren(
    h("p", {}, "No transaction yet. Paste this into a terminal, and watch it walk along the fence:"),
    h("pre", {}, h("code", {}, command)),
  );
}
