/** A transaction for people: as a line, a table row, in full, and as prose. */
import type { Explanation, Transaction } from "../../client/index.ts";
import { inEther } from "./amounts.ts";
import { factsTable, inert, listing } from "./table.ts";
import type { Colour, Paint } from "./terminal.ts";

export function statusOf({ state, subState }: { readonly state: string; readonly subState: string | null }): string {
  return subState === null ? state : `${state}/${subState}`;
}

/** Colour of a status; none for any other cell. */
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

/** The transaction after an action. */
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
    factsTable(factsOf(transaction), paint, colourOf),
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
  unknown: "the endpoint has no receipt of it",
  differs: "the endpoint shows it in another block than the known one",
  silent: "no endpoint answered in time with a usable result",
};

/** Logs and revert as an endpoint reports them; their texts come from contracts. */
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
  const table = rows.length === 0 ? "no logs\n" : listing(["contract", "event", "what"], rows, paint);
  return `${inert(why)}${table}${more === 0 ? "" : `and ${more} more\n`}`;
}

function minedIn(receipt: Transaction["receipt"]): string | null {
  if (receipt === null) return null;
  const { blockNumber, status, gasUsed, verified } = receipt;
  return `block ${blockNumber}, ${status}, ${gasUsed} gas${verified === false ? " (reported by one endpoint until it is final)" : ""}`;
}

function factsOf(transaction: Transaction): readonly (readonly [string, string | null])[] {
  const { txId, chainId, signer, nonce, requestId, owner, txHash, payload, receipt, lastError } = transaction;
  const { submitAttempts, lastSubmittedAt, nextResubmitAt, createdAt, updatedAt, confirmedAt } = transaction;
  return [
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

/**
 * `explain` as prose: the state, its causes, and what would help. Causes that the summary mentions are not repeated.
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

/** The action as a command to paste; the operator may improve its reason. */
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
