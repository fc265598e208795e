/** What commands print on standard output: for people, or with `--json` for programs. */
import type { Command } from "commander";
import type { Transaction } from "../../contract/transactions.ts";

export interface Output {
  stdout(text: string): void;
}

export interface CommandOptions {
  /** Instead of the file in the working directory. */
  readonly config?: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

/** How a command that ends with one answer gets it, and how people read it. */
export interface Answer<From, T> {
  readonly ask: (from: From) => Promise<T>;
  readonly show: (answer: T) => string;
  /** Throws where the command failed all the same; it is printed by then. */
  readonly judge?: (answer: T) => void;
}

export function answerWith<O extends CommandOptions, T>(command: Command, io: Output, how: Answer<O, T>): void {
  command.action(async () => {
    const options = command.optsWithGlobals<O>();
    const answer = await how.ask(options);
    io.stdout(options.json === true ? `${JSON.stringify(answer, null, 2)}\n` : how.show(answer));
    how.judge?.(answer);
  });
}

/** Columns as wide as their widest cell, two blanks between, nothing at the end of a line. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ");
  return rows.map((row) => `${line(row).trimEnd()}\n`).join("");
}

export interface ReadyNode {
  /** Where operators come in; null: in the same place. */
  readonly adminUrl?: string | null;
  readonly url: string;
  readonly nodeId: string;
}

export interface ReadyDevNode extends ReadyNode {
  readonly chainId: number;
  /** As people write them, EIP-55. */
  readonly signers: readonly string[];
  readonly needsKey: boolean;
}

export interface ConfigRow {
  /** The key in the file. */
  readonly key: string;
  readonly variable: string | null;
  /** For people: units written out, secrets masked. */
  readonly value: string;
  readonly origin: string;
}

/** The one line that a supervisor waits for. */
export function readyLine({ url, adminUrl = null, nodeId }: ReadyNode): string {
  return `${JSON.stringify({ ready: true, url, ...(adminUrl !== null && { adminUrl }), nodeId })}\n`;
}

/** The last thing that `dev` says before it is the reader's turn: something to paste. */
export function devWelcome({ url, adminUrl, chainId, signers, needsKey }: ReadyDevNode): string {
  const [from = "", to = from] = signers;
  const body = JSON.stringify({ signer: from, requestId: "hello-1", payload: { to, value: "1" } });
  const key = needsKey ? " -H 'authorization: Bearer YOUR_API_KEY'" : "";
  return `
  Fencepost is ready: ${url} (chain ${chainId}, ${signers.length} test accounts)

  Send a transaction:

    curl -s ${url}/api/v1/tx -H 'content-type: application/json'${key} -d '${body}'

  Watch it become final: ${adminUrl ?? url}/        API reference: ${url}/docs        Stop: Ctrl-C

`;
}

export interface DemoReport {
  readonly accepted: number;
  readonly confirmed: number;
  /** Answered 202, and not confirmed. */
  readonly lost: number;
  /** On the chain more often than they were asked for. */
  readonly duplicate: number;
  /** Nonces below the highest one that no transaction of ours has. */
  readonly gaps: number;
  readonly takeovers: number;
  readonly fencedWrites: number;
  /** From the kill until a create on one of its lanes was accepted again. */
  readonly takeOverSeconds: number | null;
  readonly seconds: number;
}

export function demoTable(report: DemoReport): string {
  const seconds = (value: number | null) => (value === null ? "-" : `${value.toFixed(1)} s`);
  const rows = [
    ["accepted", String(report.accepted)],
    ["confirmed", String(report.confirmed)],
    ["lost", String(report.lost)],
    ["duplicate", String(report.duplicate)],
    ["gaps", String(report.gaps)],
    ["takeovers", String(report.takeovers)],
    ["fenced writes", String(report.fencedWrites)],
    ["time to take over", seconds(report.takeOverSeconds)],
    ["time in all", seconds(report.seconds)],
  ] as const;
  return `\n${rows.map(([name, value]) => `  ${name.padEnd(20)}${value.padStart(8)}\n`).join("")}\n`;
}

export function migrationReport({ applied }: { readonly applied: readonly string[] }): string {
  if (applied.length === 0) return "the schema is up to date\n";
  return applied.map((name) => `applied ${name}\n`).join("");
}

export function configTable(rows: readonly ConfigRow[]): string {
  return table(
    rows.map(({ key, variable, value, origin }) => {
      return [key, value, origin === "environment" ? (variable ?? origin) : origin];
    }),
  );
}

/** What an action did to a transaction, and what is tracked of it now. */
export function actionReport(action: string, { txId, nonce, state, subState, attempts }: Transaction): string {
  const status = subState === null ? state : `${state}/${subState}`;
  const lines = attempts.map(({ ordinal, kind, txHash }) => `  attempt ${ordinal}  ${kind.padEnd(11)}  ${txHash}\n`);
  return `${action}: transaction ${txId} (nonce ${nonce ?? "-"}) is ${status}\n${lines.join("")}`;
}
