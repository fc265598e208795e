/** Standard output and standard error of the process, for the command line. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import type { CliIo, Screen } from "../adapters/cli/terminal.ts";
import { systemClock } from "../adapters/system/clock.ts";
import type { Environment } from "../adapters/system/environment.ts";
import { createMask } from "../domain/text/mask.ts";
import { version } from "./node/version.ts";
import { openExport } from "./remote/export-file.ts";
import { misuse } from "./remote/misuse.ts";

export interface ProcessOutput extends CliIo {
  /** Prints one line of progress on standard error. */
  say(line: string): void;
  /** Masks these texts in all later error output: an error may quote its input. */
  hide(secrets: readonly string[]): void;
}

export function createOutput({ variables }: Pick<Environment, "variables">): ProcessOutput {
  let hidden: readonly string[] = [];
  let mask = createMask(hidden);
  let readerLeft = false;
  // A closed output pipe (`fencepost config | head -1`) is no error.
  process.stdout.on("error", () => {
    readerLeft = true;
  });
  const stderr = (text: string) => void process.stderr.write(mask(text));
  return {
    version,
    stdout: (text) => void process.stdout.write(text),
    stderr,
    say: (line) => stderr(`${line}\n`),
    screen: () => screenOf(process.stdout, variables),
    readerLeft: () => readerLeft,
    now: () => systemClock.now(),
    sleep: (ms) => systemClock.sleep(ms),
    newId: randomUUID,
    read: readText,
    openExport,
    hide: (secrets) => {
      hidden = [...hidden, ...secrets];
      mask = createMask(hidden);
    },
  };
}

/**
 * Terminal size and colours; null if the stream is no terminal. NO_COLOR: any value but the empty one switches colours
 * off (https://no-color.org).
 */
export function screenOf(
  { isTTY, columns = 80, rows = 24 }: Partial<Pick<NodeJS.WriteStream, "isTTY" | "columns" | "rows">>,
  { NO_COLOR: noColour = "", TERM: terminal = "" }: Environment["variables"],
): Screen | null {
  return isTTY === true ? { columns, rows, colours: noColour === "" && terminal !== "dumb" } : null;
}

async function readText(path: string) {
  if (path === "-") return text(process.stdin);
  return readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === "ENOENT" ? "there is no such file" : `it cannot be read (${cause.code})`;
    throw misuse(`${path}: ${why}`, { cause });
  });
}
