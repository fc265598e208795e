/** What commands print on standard output: for people, or with `--json` for programs. */

export interface ReadyNode {
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
  readonly key: string;
  readonly variable: string | null;
  readonly value: string;
  readonly origin: string;
}

/** The one line that a supervisor waits for. */
export function readyLine({ url, nodeId }: ReadyNode): string {
  return `${JSON.stringify({ ready: true, url, nodeId })}\n`;
}

/** The last thing that `dev` says before it is the reader's turn: something to paste. */
export function devWelcome({ url, chainId, signers, needsKey }: ReadyDevNode): string {
  const [from = "", to = from] = signers;
  const body = JSON.stringify({ signer: from, requestId: "hello-1", payload: { to, value: "1" } });
  const key = needsKey ? " -H 'authorization: Bearer YOUR_API_KEY'" : "";
  return `
  Fencepost is ready: ${url} (chain ${chainId}, ${signers.length} test accounts)

  Send a transaction:

    curl -s ${url}/api/v1/tx -H 'content-type: application/json'${key} -d '${body}'

  Watch it become final: ${url}/        API reference: ${url}/docs        Stop: Ctrl-C

`;
}

export function migrationReport(applied: readonly string[]): string {
  if (applied.length === 0) return "the schema is up to date\n";
  return applied.map((name) => `applied ${name}\n`).join("");
}

export function configTable(rows: readonly ConfigRow[]): string {
  const width = (cells: readonly string[]) => Math.max(...cells.map((cell) => cell.length));
  const keys = width(rows.map((row) => row.key));
  const values = width(rows.map((row) => row.value));
  return rows
    .map(({ key, variable, value, origin }) => {
      const source = origin === "environment" ? (variable ?? origin) : origin;
      return `${key.padEnd(keys)}  ${value.padEnd(values)}  ${source}\n`;
    })
    .join("");
}
