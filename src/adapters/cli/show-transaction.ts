/** Formats a transaction for people: as a line, as a table row, in full, and as prose. */
import type { Completion, Explanation, Transaction } from "../../client/index.ts";
import { inEther } from "./amounts.ts";
import { factsTable, inert, listing, tableOf } from "./table.ts";
import type { Colour, Paint } from "./terminal.ts";

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

/** Shortens an address or hash, for example to `0xf39F…2266`. */
export function short(hex: string | null): string {
  return hex === null ? "-" : hex.length <= 14 ? hex : `${hex.slice(0, 6)}…${hex.slice(-4)}`;
}

/** One line about a change of a transaction; `begins` is printed at its start. */
export function changeLine(change: Transaction | Completion, begins: string, paint: Paint): string {
  const { signer, nonce, chainId, txId, requestId } = change;
  const lane = `${short(signer)} nonce ${nonce ?? "-"} on chain ${chainId}`;
  const named = requestId === null ? "" : ` (${inert(requestId)})`;
  return `${begins}  ${coloured(paint, statusOf(change))}  ${lane}  ${txId}${named}\n`;
}

/** Text printed after an action on a transaction: the action and the transaction's new state. */
export function actionReport(action: string, transaction: Transaction, paint: Paint): string {
  const { txId, nonce, attempts } = transaction;
  const lines = attempts.map(({ ordinal, kind, txHash }) => `  attempt ${ordinal}  ${kind.padEnd(11)}  ${txHash}\n`);
  const status = coloured(paint, statusOf(transaction));
  return `${action}: transaction ${txId} (nonce ${nonce ?? "-"}) is ${status}\n${lines.join("")}`;
}

export const transactionsTable = tableOf<Transaction>(
  "there is no such transaction",
  {
    transaction: "txId",
    chain: "chainId",
    signer: ({ signer }) => short(signer),
    nonce: "nonce",
    state: statusOf,
    hash: ({ txHash }) => short(txHash),
    created: "createdAt",
    "request id": "requestId",
  },
  colourOf,
);

export function wholeTransaction(transaction: Transaction, paint: Paint): string {
  const { attempts, history, confirmations, onChain } = transaction;
  const parts = [
    factsTable(factsOf(transaction), paint, colourOf),
    attempts.length === 0 ? "" : `\n${attemptsTable(attempts, paint)}`,
    history === undefined ? "" : `\n${listing(history, paint, HISTORY, colourOf)}`,
    confirmations === undefined
      ? ""
      : `\n${confirmations.map(({ number, hash }) => `block ${number}  ${hash}\n`).join("")}`,
    onChain === undefined ? "" : `\n${shownOnChain(onChain, paint)}`,
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
function shownOnChain({ kind, logs, more, revert }: NonNullable<Transaction["onChain"]>, paint: Paint) {
  if (kind !== "shown") return `on chain: ${UNSHOWN[kind] ?? kind}\n`;
  const reasons = [revert?.name, revert?.message, revert?.data].filter((each) => typeof each === "string");
  const why = revert === null ? "" : `reverted: ${reasons.join(" ")}\n`;
  return `${inert(why)}${logsTable({ items: logs }, paint)}${more === 0 ? "" : `and ${more} more\n`}`;
}

const logsTable = tableOf<NonNullable<Transaction["onChain"]>["logs"][number]>("no logs", {
  contract: "address",
  event: ({ event, topics }) => event?.name ?? topics[0] ?? "anonymous",
  what: ({ event, data, dataLength }) =>
    event?.args.map(({ name, value }) => `${name} ${value}`).join(", ") ?? `${dataLength} bytes ${short(data)}`,
});

function minedIn(receipt: Transaction["receipt"]) {
  if (receipt === null) return null;
  const { blockNumber, status, gasUsed, verified } = receipt;
  return `block ${blockNumber}, ${status}, ${gasUsed} gas${verified === false ? " (reported by one endpoint until it is final)" : ""}`;
}

function factsOf(transaction: Transaction) {
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
    "new contract": receipt?.contractAddress,
    "last error": transaction.lastError,
    sent: submitAttempts === 0 || lastSubmittedAt === null ? null : `${times}, last ${lastSubmittedAt}`,
    "sent again": transaction.nextResubmitAt,
    created: transaction.createdAt,
    changed: transaction.updatedAt,
    confirmed: transaction.confirmedAt,
  };
}

function attemptsTable(attempts: Transaction["attempts"], paint: Paint) {
  return listing(attempts, paint, {
    attempt: "ordinal",
    kind: "kind",
    hash: ({ txHash }) => txHash ?? "(not known)",
    gas: "gas",
    "price, wei": ({ gasPrice, maxFeePerGas, maxPriorityFeePerGas }) =>
      gasPrice ?? `${maxFeePerGas ?? "-"}, tip ${maxPriorityFeePerGas ?? "-"}`,
    "first sent": ({ firstSentAt }) => firstSentAt ?? "not sent",
  });
}

const HISTORY = {
  when: "firstAt",
  event: ({ count, event }: HistoryEntry) => (count === 1 ? event : `${event} ×${count}`),
  state: statusOf,
  node: "nodeId",
  "who and why": ({ actor, reason }: HistoryEntry) => [actor, reason].filter((word) => word !== null).join(": "),
} as const;
type HistoryEntry = NonNullable<Transaction["history"]>[number];

/**
 * Formats the response of `explain` as prose: the state, its causes, and what would help. Causes that the summary
 * mentions are not repeated.
 */
export function explanationInWords(explanation: Explanation, paint: Paint): string {
  const { summary, causes, blockedBy, help, actions } = explanation;
  const mentioned = causes.filter(({ text }) => summary.includes(text)).map(({ code }) => paint("grey", code));
  const others = causes.filter(({ text }) => !summary.includes(text));
  const why = others.map(({ code, text, since }) => {
    const when = since === undefined ? "" : ` (since ${since})`;
    return `  • ${inert(text)}${when} ${paint("grey", code)}\n`;
  });
  const before = blockedBy === undefined ? "" : `\nIt waits for nonce ${blockedBy.nonce}${idOf(blockedBy)}.\n`;
  const advice = help.flatMap(({ code, text }) => [
    `  → ${inert(text)} ${paint("grey", code)}\n`,
    ...actions.filter((action) => action.code === code).map((action) => `      ${inert(commandOf(action))}\n`),
  ]);
  return [
    `${[paint("bold", inert(summary)), ...mentioned].join(" ")}\n`,
    why.length === 0 ? "" : `\n${mentioned.length === 0 ? "Why" : "Also"}:\n${why.join("")}`,
    before,
    advice.length === 0 ? "" : `\nWhat helps:\n${advice.join("")}`,
  ].join("");
}

/** Formats a suggested action as a command to paste; the operator may edit its reason. */
function commandOf({ action, path, body }: Explanation["actions"][number]) {
  const { reason, ...rest } = body;
  const [, name] = /\/(?:tx|signers)\/([^/]+)\//.exec(path) ?? [];
  const command = COMMANDS[action] ?? action;
  const flags = Object.entries(rest).map(([key, value]) => `--${key === "chainId" ? "chain-id" : key} ${value}`);
  return ["fencepost", command, ...(name === undefined ? [] : [name]), ...flags, `--reason "${reason}"`].join(" ");
}

const COMMANDS: Readonly<Record<string, string>> = { resume: "unhold", resumeLane: "resume", endKill: "unkill" };

function idOf({ txId }: { readonly txId?: string }) {
  return txId === undefined ? "" : `: fencepost explain ${txId}`;
}

function callInWords({ contract, name, args }: NonNullable<Transaction["decoded"]>) {
  const listed = args.map((each) => `${each.name} ${each.value}`).join(", ");
  return `${contract === null ? "" : `${contract}.`}${name}(${listed})`;
}
