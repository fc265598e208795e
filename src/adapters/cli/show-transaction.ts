/** A transaction as people read it: in a line, in a table, whole, and as prose. */
import type { Explanation, Transaction } from "../../client/index.ts";
import { inEther } from "./amounts.ts";
import { inert, listing, table } from "./table.ts";
import type { Colour, Paint } from "./terminal.ts";

export function statusOf({ state, subState }: { readonly state: string; readonly subState: string | null }): string {
  return subState === null ? state : `${state}/${subState}`;
}

/** Of a status, or of any other cell: none. */
export function colourOf(cell: string): Colour | null {
  if (/^(FAILED_FINAL|STUCK|REORGED|CONFIRMED\/REPLACED)/.test(cell)) return "red";
  if (cell.startsWith("CONFIRMED")) return "green";
  return /^(TRACKING|ALLOCATED|CREATED)/.test(cell) ? "yellow" : null;
}

export function coloured(paint: Paint, status: string): string {
  const colour = colourOf(status);
  return colour === null ? status : paint(colour, status);
}

/** `0xf39F…2266`. */
export function short(hex: string | null): string {
  return hex === null ? "-" : hex.length <= 14 ? hex : `${hex.slice(0, 6)}…${hex.slice(-4)}`;
}

/** What an action did to a transaction, and what is tracked of it now. */
export function actionReport(action: string, transaction: Transaction, paint: Paint): string {
  const { txId, nonce, attempts } = transaction;
  const lines = attempts.map(({ ordinal, kind, txHash }) => `  attempt ${ordinal}  ${kind.padEnd(11)}  ${txHash}\n`);
  const status = coloured(paint, statusOf(transaction));
  return `${action}: transaction ${txId} (nonce ${nonce ?? "-"}) is ${status}\n${lines.join("")}`;
}

export function transactionsTable(items: readonly Transaction[], paint: Paint): string {
  const rows = items.map((each) => [
    ...[each.txId, String(each.chainId), short(each.signer), String(each.nonce ?? "-"), statusOf(each)],
    ...[short(each.txHash), each.createdAt, each.requestId ?? "-"],
  ]);
  return listing(
    ["transaction", "chain", "signer", "nonce", "state", "hash", "created", "request id"],
    rows,
    paint,
    colourOf,
  );
}

export function wholeTransaction(transaction: Transaction, paint: Paint): string {
  const { attempts, history, confirmations, onChain } = transaction;
  const parts = [
    table(factsOf(transaction), paint, (cell, column) => (column === 0 ? "grey" : colourOf(cell))),
    attempts.length === 0 ? "" : `\n${attemptsTable(attempts, paint)}`,
    history === undefined ? "" : `\n${historyTable(history, paint)}`,
    confirmations === undefined
      ? ""
      : `\n${confirmations.map(({ number, hash }) => `block ${number}  ${hash}\n`).join("")}`,
    onChain === undefined ? "" : `\n${shownOnChain(onChain, paint)}`,
  ];
  return parts.join("");
}

const UNSHOWN: Readonly<Record<string, string>> = {
  unmined: "not mined yet: there are no logs",
  unknown: "the endpoint that was asked has no receipt of it",
  differs: "the endpoint that was asked shows it in another block than the one that is known",
  silent: "no endpoint answered in time, or with something of use",
};

/** Contracts wrote it, and an endpoint tells it. */
function shownOnChain({ kind, logs, more, revert }: NonNullable<Transaction["onChain"]>, paint: Paint): string {
  if (kind !== "shown") return `on chain: ${UNSHOWN[kind] ?? kind}\n`;
  const rows = logs.map(({ address, topics, data, dataLength, event }) => [
    address,
    event === null ? (topics[0] ?? "anonymous") : event.name,
    event === null
      ? `${dataLength} bytes ${short(data)}`
      : event.args.map(({ name, value }) => `${name} ${value}`).join(", "),
  ]);
  const why =
    revert === null
      ? ""
      : `reverted: ${[revert.name, revert.message, revert.data].filter((each) => each !== null).join(" ")}\n`;
  const told = rows.length === 0 ? "no logs\n" : listing(["contract", "event", "what"], rows, paint);
  return `${inert(why)}${told}${more === 0 ? "" : `and ${more} more\n`}`;
}

function minedIn(receipt: Transaction["receipt"]): string | null {
  if (receipt === null) return null;
  const { blockNumber, status, gasUsed, verified } = receipt;
  return `block ${blockNumber}, ${status}, ${gasUsed} gas${verified === false ? " (one endpoint's word until it is final)" : ""}`;
}

function factsOf(transaction: Transaction): readonly (readonly string[])[] {
  const { txId, chainId, signer, nonce, requestId, owner, txHash, payload, receipt, lastError } = transaction;
  const { submitAttempts, lastSubmittedAt, nextResubmitAt, createdAt, updatedAt, confirmedAt } = transaction;
  const facts: readonly (readonly [string, string | null])[] = [
    ["transaction", txId],
    ["state", statusOf(transaction)],
    ["chain", String(chainId)],
    ["signer", signer],
    ["nonce", nonce === null ? null : String(nonce)],
    ["request id", requestId],
    ["made by", owner],
    ["to", payload.to ?? "(a new contract)"],
    ["value", inEther(payload.value)],
    ["data", payload.data === "0x" ? null : `${payload.data.slice(0, 10)}, ${payload.data.length / 2 - 1} bytes`],
    ["hash", txHash],
    ["mined", minedIn(receipt)],
    ["new contract", receipt?.contractAddress ?? null],
    ["last error", lastError],
    [
      "sent",
      submitAttempts === 0 || lastSubmittedAt === null
        ? null
        : `${submitAttempts === 1 ? "once" : `${submitAttempts} times`}, last ${lastSubmittedAt}`,
    ],
    ["sent again", nextResubmitAt],
    ["created", createdAt],
    ["changed", updatedAt],
    ["confirmed", confirmedAt],
  ];
  return facts.flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
}

function attemptsTable(attempts: Transaction["attempts"], paint: Paint): string {
  const rows = attempts.map(({ ordinal, kind, txHash, gas, firstSentAt, ...fees }) => {
    const price = fees.gasPrice ?? `${fees.maxFeePerGas ?? "-"}, tip ${fees.maxPriorityFeePerGas ?? "-"}`;
    return [String(ordinal), kind, txHash ?? "(not known)", gas, price, firstSentAt ?? "not sent"];
  });
  return listing(["attempt", "kind", "hash", "gas", "price, wei", "first sent"], rows, paint);
}

function historyTable(history: NonNullable<Transaction["history"]>, paint: Paint): string {
  const rows = history.map(({ firstAt, event, count, actor, reason, nodeId, ...status }) => [
    ...[firstAt, count === 1 ? event : `${event} ×${count}`, statusOf(status)],
    ...[nodeId ?? "-", [actor, reason].filter((word) => word !== null).join(": ")],
  ]);
  return listing(["when", "event", "state", "node", "who and why"], rows, paint, colourOf);
}

/** `explain` as prose: what is so, why, and what would help. What the summary says already is not said twice. */
export function explanationInWords(explanation: Explanation, paint: Paint): string {
  const { summary, causes, blockedBy, help, actions } = explanation;
  const said = causes.filter(({ text }) => summary.includes(text)).map(({ code }) => paint("grey", code));
  const others = causes.filter(({ text }) => !summary.includes(text));
  const why = others.map(({ code, text, since }) => {
    const when = since === undefined ? "" : ` (since ${since})`;
    return `  • ${inert(text)}${when} ${paint("grey", code)}\n`;
  });
  const before = blockedBy === undefined ? "" : `\nIt waits for nonce ${blockedBy.nonce}${idOf(blockedBy)}.\n`;
  const what = help.flatMap(({ code, text }) => [
    `  → ${inert(text)} ${paint("grey", code)}\n`,
    ...actions.filter((action) => action.code === code).map((action) => `      ${inert(commandOf(action))}\n`),
  ]);
  return [
    `${[paint("bold", inert(summary)), ...said].join(" ")}\n`,
    why.length === 0 ? "" : `\n${said.length === 0 ? "Why" : "Also"}:\n${why.join("")}`,
    before,
    what.length === 0 ? "" : `\nWhat helps:\n${what.join("")}`,
  ].join("");
}

/** The same, to be pasted: its reason is the operator's to put in better words. */
function commandOf({ action, path, body }: Explanation["actions"][number]): string {
  const { reason, ...rest } = body;
  const [, name] = /\/(?:tx|signers)\/([^/]+)\//.exec(path) ?? [];
  const command = COMMANDS[action] ?? action;
  const flags = Object.entries(rest).map(([key, value]) => `--${key === "chainId" ? "chain-id" : key} ${value}`);
  return ["fencepost", command, ...(name === undefined ? [] : [name]), ...flags, `--reason "${reason}"`].join(" ");
}

const COMMANDS: Readonly<Record<string, string>> = { resume: "unhold", resumeLane: "resume", endKill: "unkill" };

function idOf({ txId }: { readonly txId?: string }): string {
  return txId === undefined ? "" : `: fencepost explain ${txId}`;
}
