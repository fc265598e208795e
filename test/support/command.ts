import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { type CliActions, runCli } from "../../src/adapters/cli/run-cli.ts";
import type { CliIo, Screen } from "../../src/adapters/cli/terminal.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { openExport } from "../../src/main/remote/export-file.ts";

const refuse = async () => {
  throw new Error("this command should not have run");
};

const NONE: CliActions = {
  dev: refuse,
  start: refuse,
  demo: refuse,
  migrate: refuse,
  config: refuse,
  connect: refuse,
  look: refuse,
  chosen: async () => ({ url: "http://127.0.0.1:3000", keyFrom: null, ignored: [] }),
  answers: async () => false,
  newKey: refuse,
  importKey: refuse,
  listKeyFiles: refuse,
  readProfiles: refuse,
  writeProfiles: refuse,
  doctor: refuse,
  bench: refuse,
  chaos: refuse,
  init: refuse,
};

export interface CommandWorld {
  readonly actions?: Partial<CliActions>;
  /** If set, standard output is a terminal. */
  readonly screen?: Screen;
  /** Contents of the files that the command may read, by path; `-` is standard input. */
  readonly files?: Readonly<Record<string, string>>;
  /** True if the command calls a real node: it then uses the real clock, and no id is used twice. */
  readonly real?: true;
  /** Answers of the person at the terminal, in order. Without it, nobody can be asked. */
  readonly typed?: readonly string[];
  /** Collects the questions that were asked, and the texts beside the spinner. */
  readonly questions?: string[];
  readonly doing?: string[];
  /** Number of reads after which the program that reads standard output closes it. */
  readonly looks?: number;
  /** Aborted when that program closes it. */
  readonly left?: AbortSignal;
  /** Directory in which `export` writes files; by default the working directory. */
  readonly directory?: string;
}

/** Runs a command in this process. Without a real node, time advances only while the command sleeps. */
export async function runCommand(argv: readonly string[], world: CommandWorld = {}) {
  const { actions = {}, screen = null, files = {}, looks = 1, real = false, typed = null } = world;
  const { questions = [], doing = [], directory = "." } = world;
  let stdout = "";
  let stderr = "";
  let nowMs = Date.parse("2026-01-01T00:00:00.000Z");
  let looked = 0;
  const advance = async (ms: number): Promise<void> => {
    nowMs += ms;
  };
  const io: CliIo = {
    version: "1.2.3",
    stdout: (text) => {
      stdout += text;
    },
    stderr: (text) => {
      stderr += text;
    },
    screen: () => screen,
    ask:
      typed &&
      (async (question) => {
        questions.push(question);
        return typed[questions.length - 1] ?? "";
      }),
    busy: (what) => {
      doing.push(what);
      return { update: (next) => void doing.push(next), end: () => void doing.push("end") };
    },
    readerLeft: () => ++looked > looks,
    whenReaderLeft: world.left ?? new AbortController().signal,
    now: real ? systemClock.now : () => new Date(nowMs),
    sleep: real ? systemClock.sleep : advance,
    newId: () => (real ? randomUUID() : "made-up"),
    read: async (path) => {
      const text = files[path];
      if (text === undefined) throw new Error(`${path}: there is no such file`);
      return text;
    },
    openExport: (path) => openExport(resolve(directory, path)),
  };
  const code = await runCli(argv, { ...NONE, ...actions }, io);
  return { code, stdout, stderr };
}
