/**
 * `fencepost keys` manages the encrypted key files of the configured directory. `keys api` manages API keys in the
 * database, through a node.
 */
import { type Command, InvalidArgumentError } from "commander";
import type { AddKey, Keys, NewKey, RevokedKey } from "../../client/index.ts";
import { answerWith, type CommandOptions, given } from "./answer.ts";
import { askNode, type RemotePorts } from "./remote.ts";
import { id, prose, rows, spare, tableOf, time } from "./table.ts";
import type { View } from "./terminal.ts";

export interface ImportOptions extends CommandOptions {
  /** File to import the key from; `-` means standard input. */
  readonly from: string;
}

export interface KeyRow {
  readonly address: string | null;
  readonly file: string;
}

export interface KeyActions {
  newKey(options: CommandOptions): Promise<KeyRow>;
  importKey(options: ImportOptions): Promise<KeyRow>;
  listKeyFiles(options: CommandOptions): Promise<readonly KeyRow[]>;
}

export function addKeys(program: Command, { actions, io }: RemotePorts & { readonly actions: KeyActions }): void {
  const keys = program
    .command("keys")
    .description("create, import and list the encrypted keys of FENCEPOST_KEYSTORE_DIR; manage API keys");
  const stored = ({ address, file }: KeyRow) => `${address} is in ${file}\n`;
  const making = keys.command("new").description("create a key, and print its address");
  answerWith(making, io, { ask: actions.newKey, show: stored, doing: "encrypting the key" });
  const importing = keys
    .command("import")
    .description("import a private key, as hex from standard input, and print its address")
    .option("--from <file>", "the file that holds it, instead of standard input", "-");
  answerWith(importing, io, { ask: actions.importKey, show: stored, doing: "encrypting the key" });
  const list = keys.command("list").description("list the addresses of the keys");
  answerWith(list, io, { ask: actions.listKeyFiles, show: filesTable });
  addApiKeys(keys, { actions, io });
}

function filesTable(keys: readonly KeyRow[], view: View) {
  if (keys.length === 0) return "there is no key\n";
  return rows(keys, view, { address: ({ address }) => address ?? "(the file does not say)", file: id("file") });
}

function addApiKeys(keys: Command, ports: RemotePorts) {
  const api = keys
    .command("api")
    .description("manage the API keys of the database; requires a key with the scope admin");
  askNode(api.command("list").description("list them, without their secrets"), ports, {
    ask: async (client) => ({ items: await client.keys() }),
    show: keysTable,
  });
  const making = api.command("new").description("create one, or a second secret of one; the secret is shown once");
  askNode(making, ports, {
    ask: (client, { rate: createsPerSecond, readRate: readsPerSecond, ...limits }: NewKeyOptions, name) =>
      client.addKey({ name, ...limits, ...given({ createsPerSecond, readsPerSecond }) }),
    show: newKeyLines,
  })
    .argument("<name>", "owner of the transactions that it creates")
    .option("--scopes <list>", "comma-separated, instead of read,submit", words)
    .option("--signers <list>", "the only ones that it may see and use", words)
    .option("--chains <list>", "the only ones that it may see and use, by id", numbers)
    .option("--rate <number>", "the most creates a second, on each node", number)
    .option("--read-rate <number>", "the most reads of a chain a second, on each node", number)
    .option("--queue-share <part>", "the part of a lane's queue that it may fill: 0.1", number);
  const revoke = api
    .command("revoke")
    .description("revoke one, or one of its secrets; every node refuses it within a second");
  askNode(revoke, ports, {
    ask: (client, { secret: secretId }: { readonly secret?: string }, name) =>
      client.revokeKey(name, given({ secretId })),
    show: revokedLine,
    question: async (_, { secret }, name) =>
      `Revoke ${secret === undefined ? "" : `the secret ${secret} of `}the key ${name}? Its callers are refused on every node within a second, for ever.`,
  })
    .argument("<name>", "its name")
    .option("--secret <id>", "only this one of its secrets, by its id");
}

type NewKeyOptions = Omit<AddKey, "name"> & { readonly rate?: number; readonly readRate?: number };

/** Parses a number. The node checks its limits. */
function number(text: string) {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError("The value must be a number above zero.");
}

export function words(text: string): readonly string[] {
  return text.split(",");
}

export function numbers(text: string): readonly number[] {
  const ids = text.split(",").map(Number);
  if (ids.every((id) => Number.isSafeInteger(id) && id > 0)) return ids;
  throw new InvalidArgumentError("The value must be comma-separated chain ids.");
}

function newKeyLines({ name, scopes, secret, secretId }: NewKey) {
  return `${name} (${scopes.join("+")}), secret ${secretId}, shown this once:\n${secret}\n`;
}

function revokedLine({ name, secretId }: RevokedKey) {
  return secretId === null ? `revoked ${name}\n` : `revoked secret ${secretId} of ${name}\n`;
}

const keysTable = tableOf<Keys["items"][number]>("there are no API keys in the database", {
  name: "name",
  scopes: prose(({ scopes }) => scopes.join("+")),
  signers: id(({ signers }) => signers?.join(" ") ?? "all"),
  chains: prose(({ chains }) => chains?.join(" ") ?? "all", 1),
  rate: spare(({ createsPerSecond }) => createsPerSecond ?? "default", 2),
  "read rate": spare(({ readsPerSecond }) => readsPerSecond ?? "default", 4),
  "queue share": spare(({ queueShare }) => queueShare ?? "default", 3),
  secrets: prose(({ secrets }) => secrets.map(({ secretId }) => secretId).join(" ")),
  created: time("createdAt"),
});
