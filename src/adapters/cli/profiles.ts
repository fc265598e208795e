/** `fencepost profile`: stores nodes and keys under names, so that commands need neither configuration nor flags. */
import type { Command } from "commander";
import { answerWith, type CommandOptions } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { listing } from "./table.ts";
import type { CliIo, Paint } from "./terminal.ts";

export interface Profile {
  readonly url: string;
  readonly apiKey?: string;
}

/** Content of the profile file. */
export interface Profiles {
  readonly current: string | null;
  readonly profiles: Readonly<Record<string, Profile>>;
}

export interface ProfileActions {
  /** Reads the profiles, and the path of their file. */
  readProfiles(): Promise<{ readonly file: string } & Profiles>;
  writeProfiles(profiles: Profiles): Promise<void>;
}

export const PROFILE_NAME = /^[A-Za-z0-9_.-]{1,64}$/;

interface ProfilePorts {
  readonly actions: ProfileActions;
  readonly io: CliIo;
}

export function addProfiles(program: Command, { actions, io }: ProfilePorts): void {
  const profile = program
    .command("profile")
    .description("store nodes and keys under names, for --profile and as the default");
  const add = profile
    .command("add")
    .description("store a node's URL, and its key, under a name; the first one is the default");
  answerWith(add, io, {
    ask: async (options: CommandOptions & { readonly url: string; readonly apiKey?: string }) => {
      const name = nameIn(add);
      const apiKey = options.apiKey === "-" ? (await io.read("-")).trim() : options.apiKey;
      const kept = { url: checkedUrl(options.url), ...(apiKey === undefined ? {} : { apiKey }) };
      const { current, profiles } = await actions.readProfiles();
      await actions.writeProfiles({ current: current ?? name, profiles: { ...profiles, [name]: kept } });
      return { name, url: kept.url, hasKey: apiKey !== undefined, isCurrent: (current ?? name) === name };
    },
    show: ({ name, url, hasKey, isCurrent }) =>
      `${name} is ${url}, ${hasKey ? "with a key" : "without a key"}${isCurrent ? "; commands call it by default" : ""}\n`,
  });
  add
    .argument("<name>", "its name")
    .requiredOption("--url <url>", "the node's URL")
    .option("--api-key <secret>", "its API key; - reads it from standard input");
  const list = profile.command("list").description("list them, without their keys");
  answerWith(list, io, { ask: async () => shown(await actions.readProfiles()), show: profilesTable });
  const use = profile.command("use").description("use this one by default");
  answerWith(use, io, {
    ask: async () => {
      const { profiles, name } = await known(actions, use);
      await actions.writeProfiles({ current: name, profiles });
      return { current: name };
    },
    show: ({ current }) => `commands call ${current} by default\n`,
  });
  use.argument("<name>", "its name");
  const remove = profile.command("remove").description("delete one, and its key");
  answerWith(remove, io, {
    ask: async () => {
      const { profiles, name, current } = await known(actions, remove);
      const { [name]: _, ...others } = profiles;
      await actions.writeProfiles({ current: current === name ? null : current, profiles: others });
      return { removed: name };
    },
    show: ({ removed }) => `deleted ${removed}\n`,
  });
  remove.argument("<name>", "its name");
}

function nameIn(command: Command): string {
  const [name = ""] = command.args;
  if (PROFILE_NAME.test(name)) return name;
  throw new CommandFailed(
    [`${name} is no name for a profile: letters, digits and _ . - (at most 64)`],
    EXIT_CODES.misused,
  );
}

async function known(actions: ProfileActions, command: Command) {
  const name = nameIn(command);
  const { profiles, current } = await actions.readProfiles();
  if (Object.hasOwn(profiles, name)) return { name, profiles, current };
  throw new CommandFailed([unknownProfile(name, Object.keys(profiles))], EXIT_CODES.misused);
}

export function unknownProfile(name: string, names: readonly string[]): string {
  const others = names.length === 0 ? "there is none yet: fencepost profile add" : `there are ${names.join(", ")}`;
  return `there is no profile ${name}; ${others}`;
}

function checkedUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text.replace(/\/+$/, "");
  throw new CommandFailed([`--url ${text} is no URL of a node: http://127.0.0.1:3000`], EXIT_CODES.misused);
}

function shown({ file, current, profiles }: Awaited<ReturnType<ProfileActions["readProfiles"]>>) {
  const items = Object.entries(profiles).map(([name, { url, apiKey }]) => {
    return { name, url, hasKey: apiKey !== undefined, isCurrent: name === current };
  });
  return { file, items };
}

function profilesTable({ file, items }: ReturnType<typeof shown>, paint: Paint): string {
  if (items.length === 0) return `there is no profile in ${file}; make one: fencepost profile add NAME --url URL\n`;
  const rows = items.map(({ name, url, hasKey, isCurrent }) => [
    isCurrent ? "*" : "",
    name,
    url,
    hasKey ? "yes" : "no",
  ]);
  return listing(["", "name", "url", "key"], rows, paint);
}
