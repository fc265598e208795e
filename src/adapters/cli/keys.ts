/** `fencepost keys api`: the API keys of the database, over a running node. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { AddKey, Keys, NewKey, RevokedKey } from "../../client/index.ts";
import { table } from "./present.ts";
import { type Asking, askNode } from "./remote.ts";

export function addKeyCommands(program: Command, asking: Asking): void {
  const keys = program.command("keys").description("manage keys");
  const api = keys.command("api").description("manage the API keys of the database; takes a key with the scope admin");
  const list = api.command("list").description("list them, without their secrets");
  askNode(list, asking, { ask: async (client) => ({ items: await client.keys() }), show: keysTable });
  addNew(api.command("new"), asking);
  const revoke = api
    .command("revoke")
    .description("revoke one, or one of its secrets; every node refuses it within a second");
  askNode(revoke, asking, {
    ask: (client) => {
      const { secret: secretId } = revoke.opts<{ readonly secret?: string }>();
      return client.revokeKey(revoke.args[0] ?? "", secretId === undefined ? {} : { secretId });
    },
    show: revokedLine,
  })
    .argument("<name>", "its name")
    .addOption(new Option("--secret <id>", "only this one of its secrets, by its id"));
}

function addNew(command: Command, asking: Asking): void {
  command.description("make one, or a second secret of one; the secret is shown once");
  askNode(command, asking, {
    ask: (client) => {
      const { scopes, signers, chains } = command.opts<Partial<AddKey>>();
      const wishes = { ...(scopes && { scopes }), ...(signers && { signers }), ...(chains && { chains }) };
      return client.addKey({ name: command.args[0] ?? "", ...wishes });
    },
    show: newKeyLines,
  })
    .argument("<name>", "what it makes belongs to this name")
    .addOption(new Option("--scopes <list>", "comma-separated, instead of read,submit").argParser(words))
    .addOption(new Option("--signers <list>", "the only ones that it may see and use").argParser(words))
    .addOption(new Option("--chains <list>", "the only ones that it may see and use, by id").argParser(numbers));
}

function words(text: string): readonly string[] {
  return text.split(",");
}

function numbers(text: string): readonly number[] {
  const ids = text.split(",").map(Number);
  if (ids.every((id) => Number.isSafeInteger(id) && id > 0)) return ids;
  throw new InvalidArgumentError("It must be comma-separated chain ids.");
}

function newKeyLines({ name, scopes, secret, secretId }: NewKey): string {
  return `${name} (${scopes.join("+")}), secret ${secretId}, shown this once:\n${secret}\n`;
}

function revokedLine({ name, secretId }: RevokedKey): string {
  return secretId === null ? `revoked ${name}\n` : `revoked secret ${secretId} of ${name}\n`;
}

function keysTable({ items }: { readonly items: readonly Keys["items"][number][] }): string {
  if (items.length === 0) return "there are no API keys in the database\n";
  const rows = items.map(({ name, scopes, signers, chains, secrets, createdAt }) => {
    const limits = [signers?.join(" ") ?? "all", chains?.join(" ") ?? "all"];
    return [name, scopes.join("+"), ...limits, secrets.map(({ secretId }) => secretId).join(" "), createdAt];
  });
  return table([["name", "scopes", "signers", "chains", "secrets", "created"], ...rows]);
}
