/** Output of the commands that run nodes or read this machine's configuration. */
import { figures, prose, rows } from "./table.ts";
import type { View } from "./terminal.ts";

export interface ReadyNode {
  /** URL of the node's routes for operators; null if it is the same as `url`. */
  readonly adminUrl?: string | null;
  readonly url: string;
  readonly nodeId: string;
}

export interface ReadyDevNode extends ReadyNode {
  readonly chainId: number;
  /** Addresses of the signers, with checksum (EIP-55). */
  readonly signers: readonly string[];
  readonly needsKey: boolean;
  /** URL of the embedded database, with its password; null if the database is the user's own. */
  readonly databaseUrl: string | null;
}

export interface ConfigRow {
  /** Name of the setting in the configuration file. */
  readonly key: string;
  readonly variable: string | null;
  /** Value of the setting for people: with units, and without secrets. */
  readonly value: string;
  readonly origin: string;
}

/** Line that is printed when the node is ready; supervisors wait for it. */
export function readyLine({ url, adminUrl = null, nodeId }: ReadyNode): string {
  return `${JSON.stringify({ ready: true, url, ...(adminUrl !== null && { adminUrl }), nodeId })}\n`;
}

/** Welcome text of `dev` (`fencepost dev`), with a command to paste. */
export function devWelcome({ url, adminUrl, chainId, signers, needsKey, databaseUrl }: ReadyDevNode): string {
  const [from = "", to = from] = signers;
  const body = JSON.stringify({ signer: from, requestId: "hello-1", payload: { to, value: "1" } });
  const key = needsKey ? " -H 'authorization: Bearer YOUR_API_KEY'" : "";
  const database = databaseUrl === null ? "" : `  Look into its database:\n\n    psql ${databaseUrl}\n\n`;
  return `
  Fencepost is ready: ${url} (chain ${chainId}, ${signers.length} test accounts)

  Send a transaction:

    curl -s ${url}/api/v1/tx -H 'content-type: application/json'${key} -d '${body}'

${database}  Watch it become final: ${adminUrl ?? url}/
  API reference:         ${url}/docs
  Stop:                  Ctrl-C

`;
}

export interface DemoReport {
  readonly accepted: number;
  readonly confirmed: number;
  /** Number of transactions that were accepted with 202 but not confirmed. */
  readonly lost: number;
  /** Number of transactions that were executed more often than requested. */
  readonly duplicate: number;
  /** Number of nonces below the highest used one that none of our transactions used. */
  readonly gaps: number;
  readonly takeovers: number;
  readonly fencedWrites: number;
  /** Seconds from the kill of a node until a create on one of its lanes was accepted again. */
  readonly takeOverSeconds: number | null;
  readonly seconds: number;
}

export function demoTable({ fencedWrites, takeOverSeconds, seconds, ...counts }: DemoReport): string {
  return figures({
    ...counts,
    "fenced writes": fencedWrites,
    "time to take over": takeOverSeconds === null ? "-" : `${takeOverSeconds.toFixed(1)} s`,
    "time in all": `${seconds.toFixed(1)} s`,
  });
}

export interface MigrationReport {
  readonly applied: readonly string[];
  readonly afterRestore?: boolean;
}

export function migrationReport({ applied, afterRestore = false }: MigrationReport): string {
  const lines = applied.length === 0 ? ["the schema is up to date"] : applied.map((name) => `applied ${name}`);
  if (afterRestore) lines.push("marked as restored: every lane waits for `fencepost resume` of its signer");
  return lines.map((line) => `${line}\n`).join("");
}

export function configTable(settings: readonly ConfigRow[], view: View): string {
  const from = ({ origin, variable }: ConfigRow) => (origin === "environment" ? (variable ?? origin) : origin);
  const [set, unset] = [false, true].map((isDefault) =>
    settings.filter((row) => (row.origin === "default") === isDefault),
  );
  return rows([...(set ?? []), ...(unset ?? [])], view, { key: "key", value: prose("value"), from: prose(from) });
}
