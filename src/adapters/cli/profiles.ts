/**
 * `fencepost profile`: stores node URLs and API keys under names, so that commands need neither a configuration file
 * nor flags.
 */
import type { Command } from "commander";
import { answerWith, type CommandOptions } from "./answer.ts";
import { misused } from "./failure.ts";
import { inert } from "./shorten.ts";
import { id, tableOf } from "./table.ts";
import type { CliIo, View } from "./terminal.ts";

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
  /** Reads the profiles and returns them with the path of their file. */
  readProfiles(): Promise<{ readonly file: string } & Profiles>;
  writeProfiles(profiles: Profiles): Promise<void>;
}

export const PROFILE_NAME = /^[A-Za-z0-9_.-]{1,64}$/;

export function addProfiles(program: Command, { actions, io }: { actions: ProfileActions; io: CliIo }): void {
  const profile = program
    .command("profile")
    .description("store nodes and keys under names, for --profile and as the default");
  const add = profile
    .command("add")
    .description("store a node's URL, and its key, under a name; the first one is the default");
  answerWith(add, io, {
    ask: async (options: CommandOptions & Profile, given) => {
      const name = checkedName(given);
      const apiKey = options.apiKey === "-" ? (await io.read("-")).trim() : options.apiKey;
      const kept = { url: checkedUrl(options.url).replace(/\/+$/, ""), ...(apiKey === undefined ? {} : { apiKey }) };
      const { current, profiles } = await actions.readProfiles();
      await actions.writeProfiles({ current: current ?? name, profiles: { ...profiles, [name]: kept } });
      return { name, url: kept.url, hasKey: apiKey !== undefined, isCurrent: (current ?? name) === name };
    },
    show: ({ name, url, hasKey, isCurrent }) =>
      `${name} is ${url}, ${hasKey ? "with a key" : "without a key"}${isCurrent ? "; commands call it by default" : ""}\n`,
  })
    .argument("<name>", "its name")
    .requiredOption("--url <url>", "the node's URL")
    .option("--api-key <secret>", "its API key; - reads it from standard input");
  answerWith(profile.command("list").description("list them, without their keys"), io, {
    ask: async () => shown(await actions.readProfiles()),
    show: profilesTable,
  });
  answerWith(profile.command("use").description("use this one by default"), io, {
    ask: async (_, name) => {
      const { profiles } = await withKnown(actions, name);
      await actions.writeProfiles({ current: name, profiles });
      return { current: name };
    },
    show: ({ current }) => `commands call ${current} by default\n`,
  }).argument("<name>", "its name");
  answerWith(profile.command("remove").description("delete one, and its key"), io, {
    ask: async (_, name) => {
      const { profiles, current } = await withKnown(actions, name);
      const { [name]: __, ...others } = profiles;
      await actions.writeProfiles({ current: current === name ? null : current, profiles: others });
      return { removed: name };
    },
    show: ({ removed }) => `deleted ${removed}\n`,
  }).argument("<name>", "its name");
}

function checkedName(name: string) {
  if (PROFILE_NAME.test(name)) return name;
  throw misused(`${name} is no name for a profile: letters, digits and _ . - (at most 64)`);
}

async function withKnown(actions: ProfileActions, name: string): Promise<Profiles> {
  checkedName(name);
  const stored = await actions.readProfiles();
  if (Object.hasOwn(stored.profiles, name)) return stored;
  throw misused(unknownProfile(name, Object.keys(stored.profiles)));
}

export function unknownProfile(name: string, names: readonly string[]): string {
  const others = names.length === 0 ? "there is none yet: fencepost profile add" : `there are ${names.join(", ")}`;
  return `there is no profile ${name}; ${others}`;
}

/** Returns the URL of `--url`. A host without a scheme is the usual mistake: `localhost:3000` is a URL of another kind. */
export function checkedUrl(text: string): string {
  if (isHttp(text)) return text;
  const meant = `http://${text}`;
  const example = !text.includes("://") && isHttp(meant) ? meant : "http://127.0.0.1:3000";
  throw misused(`--url ${inert(text)} is no URL of a node, which begins with http:// or https://: ${inert(example)}`);
}

function isHttp(text: string) {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function shown({ file, current, profiles }: Awaited<ReturnType<ProfileActions["readProfiles"]>>) {
  const items = Object.entries(profiles).map(([name, { url, apiKey }]) => {
    return { name, url, hasKey: apiKey !== undefined, isCurrent: name === current };
  });
  return { file, items };
}

function profilesTable({ file, items }: ReturnType<typeof shown>, view: View) {
  return tableOf<(typeof items)[number]>(
    `there is no profile in ${file}; make one: fencepost profile add NAME --url URL`,
    {
      "": ({ isCurrent }) => (isCurrent ? "*" : ""),
      name: "name",
      url: id("url"),
      key: ({ hasKey }) => (hasKey ? "yes" : "no"),
    },
  )({ items }, view);
}
