/** Formats a transaction for people: as a line, as a table row, in full, and as prose. */
import type { Completion, Explanation, Transaction } from "../../client/index.ts";
import { inEther } from "./amounts.ts";
import { commandOf } from "./remedies.ts";
import { dated, indented, inert, middle, short } from "./shorten.ts";
import { factsTable, id, listing, prose, spare, tableOf, time } from "./table.ts";
import type { Colour, Paint, View } from "./terminal.ts";

export function statusOf({ state, subState }: { readonly state: string; readonly subState: string | null }): string {
  return subState === null ? state : `${state}/${subState}`;
}

/** Colour of a table cell that contains a transaction's status; null for any other cell. */
export function colourOf(cell: string): Colour | null {
  if (/^(FAILED_FINAL|STUCK|REORGED|CONFIRMED\/REPLACED)/.test(cell)) return "red";
  if (cell.startsWith("CONFIRMED")) return "green";
  return /^(TRACKING|ALLOCATED|CREATED)/.test(cell) ? "yellow" : null;
}

export function coloured(paint: Paint, status: string): string {
  const colour = colourOf(status);
  return colour === null ? status : paint(colour, status);
}

/** One line about a change of a transaction. `place`: its position in a feed. */
export function changeLine(change: Transaction | Completion, at: string, view: View, place = ""): string {
  const { signer, nonce, chainId, txId, requestId } = change;
  const { paint, width } = view;
  const ofSigner = `nonce ${nonce ?? "-"}`;
  const ofChain = `${short(signer)} ${ofSigner}`;
  const lane = `${ofChain} on chain ${chainId}`;
  const named = requestId === null ? "" : ` (${inert(requestId)})`;
  const status = statusOf(change);
  const shown = coloured(paint, status);
  if (width === null) return `${place}${at}  ${shown}  ${lane}  ${txId}${named}\n`;
  // A terminal that follows changes shows the time of day: an age would be wrong a second later.
  const begins = `${place}${at.slice(11, 19)}Z  `;
  const free = width - begins.length - status.length - 4;
  const fits = [lane, ofChain].find((each) => each.length + LEAST_TX_ID <= free) ?? ofSigner;
  return `${begins}${shown}  ${fits}  ${middle(txId, Math.max(LEAST_TX_ID, free - fits.length))}\n`;
}

const LEAST_TX_ID = 13;

/** Text printed after an action on a transaction: the action and the transaction's new state. */
export function actionReport(action: string, transaction: Transaction, view: View): string {
  const { txId, nonce, attempts } = transaction;
  const { paint, width } = view;
  const lines = attempts.map(({ ordinal, kind, txHash }) => {
    const begins = `  attempt ${ordinal}  ${kind.padEnd(11)}  `;
    return `${begins}${middle(`${txHash}`, width === null ? Number.POSITIVE_INFINITY : width - begins.length)}\n`;
  });
  const status = statusOf(transaction);
  const report = indented("", `${action}: transaction ${txId} (nonce ${nonce ?? "-"}) is ${status}`, view);
  return `${report.slice(0, -status.length)}${coloured(paint, status)}\n${lines.join("")}`;
}

export const transactionsTable = tableOf<Transaction>(
  "there is no such transaction",
  {
    transaction: id("txId"),
    chain: spare("chainId", 3),
    signer: id("signer"),
    nonce: "nonce",
    state: statusOf,
    hash: id("txHash", 4),
    created: time("createdAt", 1),
    "request id": id("requestId", 2),
  },
  colourOf,
);

export function wholeTransaction(transaction: Transaction, view: View): string {
  const { attempts, history, confirmations, onChain } = transaction;
  const parts = [
    factsTable(factsOf(transaction, view), view, colourOf),
    attempts.length === 0 ? "" : `\n${attemptsTable(attempts, view)}`,
    history === undefined ? "" : `\n${listing(history, view, HISTORY, colourOf)}`,
    confirmations === undefined
      ? ""
      : `\n${confirmations.map(({ number, hash }) => `block ${number}  ${hash}\n`).join("")}`,
    onChain === undefined ? "" : `\n${shownOnChain(onChain, view)}`,
  ];
  return parts.join("");
}

const UNSHOWN: Readonly<Record<string, string>> = {
  unmined: "not mined yet: there are no logs",
  unknown: "the endpoint has no receipt of it",
  differs: "the endpoint shows it in another block than the known one",
  silent: "no endpoint answered in time with a usable result",
};

/**
 * Formats the logs and the revert reason of a mined transaction as an endpoint reports them. Contracts choose these
 * texts.
 */
function shownOnChain({ kind, logs, more, revert }: NonNullable<Transaction["onChain"]>, view: View) {
  if (kind !== "shown") return `on chain: ${UNSHOWN[kind] ?? kind}\n`;
  const reasons = [revert?.name, revert?.message, revert?.data].filter((each) => typeof each === "string");
  const why = revert === null ? "" : `reverted: ${reasons.join(" ")}\n`;
  return `${inert(why)}${logsTable({ items: logs }, view)}${more === 0 ? "" : `and ${more} more\n`}`;
}

const logsTable = tableOf<NonNullable<Transaction["onChain"]>["logs"][number]>("no logs", {
  contract: id("address"),
  event: id(({ event, topics }) => event?.name ?? topics[0] ?? "anonymous"),
  what: prose(
    ({ event, data, dataLength }) =>
      event?.args.map(({ name, value }) => `${name} ${value}`).join(", ") ?? `${dataLength} bytes ${short(data)}`,
  ),
});

function minedIn(receipt: Transaction["receipt"]) {
  if (receipt === null) return null;
  const { blockNumber, status, gasUsed, verified } = receipt;
  return `block ${blockNumber}, ${status}, ${gasUsed} gas${verified === false ? " (reported by one endpoint until it is final)" : ""}`;
}

/** The attempt that was mined; undefined: none was, or another program's transaction used the nonce. */
function minedAttempt({ receipt, attempts, subState }: Transaction) {
  if (receipt === null || subState === "NONCE_CONSUMED_EXTERNALLY") return undefined;
  return attempts.find(({ txHash, kind }) => txHash === receipt.txHash && kind !== "external");
}

/** Exact fee of the mined attempt. A rollup's data and blobs are paid beside gas. */
function feePaid(transaction: Transaction) {
  const { receipt } = transaction;
  if (receipt === null || minedAttempt(transaction) === undefined) return null;
  const { gasUsed, effectiveGasPrice: price, besideGas = "0", besideGasUnsure } = receipt;
  if (price === null) return "not known: the endpoints do not agree on the price";
  const fee = inEther(BigInt(gasUsed) * BigInt(price) + BigInt(besideGas));
  return besideGasUnsure === true ? `at least ${fee}: the part beside gas is not known` : fee;
}

/** Exact value that the mined attempt moved. The value of an operator's replacement is not in the response. */
function valueMoved(transaction: Transaction) {
  const { receipt, payload } = transaction;
  const mined = minedAttempt(transaction);
  if (receipt === null || mined === undefined || mined.kind === "replace") return null;
  const isPayload = receipt.status === "success" && (mined.kind === "initial" || mined.kind === "reprice");
  return inEther(isPayload ? payload.value : "0");
}

function factsOf(transaction: Transaction, view: View) {
  const at = (moment: string | null) => moment && dated(moment, view);
  const { nonce, payload, receipt, submitAttempts, lastSubmittedAt, decoded } = transaction;
  const times = submitAttempts === 1 ? "once" : `${submitAttempts} times`;
  return {
    transaction: transaction.txId,
    state: statusOf(transaction),
    chain: transaction.chainId,
    signer: transaction.signer,
    nonce,
    "request id": transaction.requestId,
    "made by": transaction.owner,
    to: payload.to ?? "(a new contract)",
    value: inEther(payload.value),
    call: decoded && callInWords(decoded),
    data: payload.data === "0x" ? null : `${payload.data.slice(0, 10)}, ${payload.data.length / 2 - 1} bytes`,
    hash: transaction.txHash,
    mined: minedIn(receipt),
    "fee paid": feePaid(transaction),
    "value moved": valueMoved(transaction),
    "new contract": receipt?.contractAddress,
    "last error": transaction.lastError,
    sent: submitAttempts === 0 || lastSubmittedAt === null ? null : `${times}, last ${at(lastSubmittedAt)}`,
    "next sent": at(transaction.nextResubmitAt),
    created: at(transaction.createdAt),
    changed: at(transaction.updatedAt),
    confirmed: at(transaction.confirmedAt),
  };
}

function attemptsTable(attempts: Transaction["attempts"], view: View) {
  return listing(attempts, view, {
    attempt: "ordinal",
    kind: "kind",
    hash: id(({ txHash }) => txHash ?? "(not known)"),
    gas: spare("gas", 1),
    "price, wei": ({ gasPrice, maxFeePerGas, maxPriorityFeePerGas }) =>
      gasPrice ?? `${maxFeePerGas ?? "-"}, tip ${maxPriorityFeePerGas ?? "-"}`,
    "first sent": time(({ firstSentAt }) => firstSentAt ?? "not sent"),
  });
}

const HISTORY = {
  when: time<HistoryEntry>("firstAt"),
  event: ({ count, event }: HistoryEntry) => (count === 1 ? event : `${event} ×${count}`),
  state: statusOf,
  node: id<HistoryEntry>("nodeId", 1),
  "who and why": prose(({ actor, reason }: HistoryEntry) => [actor, reason].filter((word) => word !== null).join(": ")),
} as const;
type HistoryEntry = NonNullable<Transaction["history"]>[number];

/**
 * Formats the response of `explain` as prose: the state, its causes, and what would help. Causes that the summary
 * mentions are not repeated, nor is its advice.
 */
export function explanationInWords(explanation: Explanation, view: View): string {
  const { causes, blockedBy, help, actions } = explanation;
  const summary = withoutAdvice(explanation);
  const mentioned = causes.filter(({ text }) => summary.includes(text)).map(({ code }) => code);
  const others = causes.filter(({ text }) => !summary.includes(text));
  const why = others.map(({ code, text, since }) => {
    const when = since === undefined ? "" : ` (since ${dated(since, view)})`;
    return withCodes(`${inert(text)}${when}`, [code], view, { mark: "  • " });
  });
  const before = blockedBy === undefined ? "" : `\nIt waits for nonce ${blockedBy.nonce}${idOf(blockedBy, view)}.\n`;
  const advice = help.flatMap(({ code, text }) => [
    withCodes(inert(text), [code], view, { mark: "  → " }),
    ...actions.filter((action) => action.code === code).map((action) => `      ${commandOf(action, view)}\n`),
  ]);
  return [
    withCodes(inert(summary), mentioned, view, { colour: "bold" }),
    why.length === 0 ? "" : `\n${mentioned.length === 0 ? "Why" : "Also"}:\n${why.join("")}`,
    before,
    advice.length === 0 ? "" : `\nWhat helps:\n${advice.join("")}`,
  ].join("");
}

/** The summary without its advice, which is the first line of the list below it. */
function withoutAdvice({ summary, help: [best] }: Explanation) {
  if (best === undefined) return summary;
  const sentence = `${best.text.charAt(0).toUpperCase()}${best.text.slice(1)}.`;
  return summary.replace(` What helps: ${best.text}.`, "").replace(` ${sentence}`, "");
}

/** Prose behind a mark, with the codes of its causes after it in grey. */
function withCodes(
  text: string,
  codes: readonly string[],
  view: View,
  { mark = "", colour }: { readonly mark?: string; readonly colour?: Colour },
) {
  const lines = indented(mark, [text, ...codes].join(" "), view);
  const end = lines.length - codes.join(" ").length;
  const said = lines.slice(0, end);
  return `${colour === undefined ? said : view.paint(colour, said)}${view.paint("grey", lines.slice(end))}\n`;
}

function idOf({ txId }: { readonly txId?: string }, { reach }: View) {
  return txId === undefined ? "" : `: fencepost explain ${txId}${reach}`;
}

function callInWords({ contract, name, args }: NonNullable<Transaction["decoded"]>) {
  const listed = args.map((each) => `${each.name} ${each.value}`).join(", ");
  return `${contract === null ? "" : `${contract}.`}${name}(${listed})`;
}
