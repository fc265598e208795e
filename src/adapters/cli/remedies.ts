/** Formats the requests that `explain` and `attention` suggest as commands to paste. */
import type { AttentionItem, Explanation } from "../../client/index.ts";
import { inert } from "./shorten.ts";
import type { View } from "./terminal.ts";

type Suggested = Explanation["actions"][number] | AttentionItem["actions"][number];

/** Command of each suggested action whose name differs from the command's. */
const COMMANDS: Readonly<Record<string, string>> = {
  resume: "unhold",
  resumeLane: "resume",
  suspendLane: "suspend",
  endKill: "unkill",
  killSigner: "kill",
  look: "nodes",
};

/**
 * The command that makes a suggested request, with the options that chose this node: without these it would go to
 * another node. `why` is the reason if the suggestion has none; an operator replaces it.
 */
export function commandOf({ action, path, body }: Suggested, { reach }: Pick<View, "reach">, why = ""): string {
  const { reason = why, ...rest } = (body ?? {}) as Readonly<Record<string, string | number | boolean>>;
  const { command, name } = partsOf(action, path);
  const flags = Object.entries(rest).map(([key, value]) => (value === true ? flagOf(key) : `${flagOf(key)} ${value}`));
  const words = ["fencepost", ...command, ...(name === undefined ? [] : [name]), ...flags];
  return `${words.map(inert).join(" ")}${body === null ? "" : ` --reason ${quoted(String(reason))}`}${reach}`;
}

function partsOf(action: string, path: string) {
  const [, group, own, does = "show"] = /\/(webhooks|signatures)\/([^/]+)(?:\/([a-z]+))?$/.exec(path) ?? [];
  if (group !== undefined) return { command: [group, does], name: own };
  const [, name] = /\/(?:tx|signers|notices)\/([^/]+)\//.exec(path) ?? [];
  return { command: [COMMANDS[action] ?? action], name };
}

/** `chainId` → `--chain-id` */
function flagOf(key: string) {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Quotes a text for a shell: in double quotes, or in single quotes if a shell would change it there. */
export function quoted(text: string): string {
  return /^[^"$`\\!]*$/.test(text) ? `"${inert(text)}"` : `'${inert(text).replaceAll("'", "'\\''")}'`;
}
