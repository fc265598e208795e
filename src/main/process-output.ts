/** Standard output and standard error of the process, for the command line. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import type { CliIo, Screen } from "../adapters/cli/terminal.ts";
import { systemClock } from "../adapters/system/clock.ts";
import type { Environment } from "../adapters/system/environment.ts";
import { createMask } from "../domain/text/mask.ts";
import { askOnTerminal } from "./ask.ts";
import { version } from "./node/version.ts";
import { openExport } from "./remote/export-file.ts";
import { misuse } from "./remote/misuse.ts";
import { createStatusLine, NO_STATUS_LINE } from "./status-line.ts";

/** Output of the progress of long work: all of it goes to standard error. */
export interface ProgressOutput extends Pick<CliIo, "busy"> {
  /** True if standard error is a terminal that can redraw its last lines. */
  readonly isTerminal: boolean;
  /** Prints one line. */
  say(line: string): void;
  nowMs(): number;
  /** Calls `tick` regularly until the returned function is called. */
  every(ms: number, tick: () => void): () => void;
}

export interface ProcessOutput extends CliIo, ProgressOutput {
  /** Masks these texts in all later error output: an error may quote its input. */
  hide(secrets: readonly string[]): void;
}

export function createOutput({ variables }: Pick<Environment, "variables">): ProcessOutput {
  let hidden: readonly string[] = [];
  let mask = createMask(hidden);
  const reader = new AbortController();
  // A closed output pipe (`fencepost config | head -1`) is no error.
  process.stdout.on("error", () => reader.abort());
  // Nor is a full disk behind it, or a terminal that was closed: a node goes on.
  process.stderr.on("error", () => undefined);
  const status = statusLineOf(variables);
  const stderr = (text: string) => status.above(() => void process.stderr.write(mask(text)));
  return {
    version,
    stdout: (text) => status.above(() => void process.stdout.write(text)),
    stderr,
    busy: status.busy,
    isTerminal: status !== NO_STATUS_LINE,
    ...TIME,
    ask: askOnTerminal(),
    say: (line) => stderr(`${line}\n`),
    screen: () => screenOf(process.stdout, variables),
    readerLeft: () => reader.signal.aborted,
    whenReaderLeft: reader.signal,
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

/** The status line on standard error. A dumb terminal cannot erase a line, so it gets none. */
function statusLineOf({ TERM: terminal = "" }: Environment["variables"]) {
  const { stderr } = process;
  if (stderr.isTTY !== true || terminal === "dumb") return NO_STATUS_LINE;
  return createStatusLine({
    columns: () => stderr.columns || DEFAULT_COLUMNS,
    write: (text) => void stderr.write(text),
    ...TIME,
  });
}

const TIME: Pick<ProgressOutput, "nowMs" | "every"> = {
  nowMs: () => systemClock.monotonicMs(),
  every: (ms, tick) => {
    const timer = setInterval(tick, ms).unref();
    return () => clearInterval(timer);
  },
};

const DEFAULT_COLUMNS = 80;

/**
 * Terminal size and colours; null if the stream is no terminal. NO_COLOR: any value but the empty one switches colours
 * off (https://no-color.org).
 */
export function screenOf(
  { isTTY, columns, rows = 24 }: Partial<Pick<NodeJS.WriteStream, "isTTY" | "columns" | "rows">>,
  { NO_COLOR: noColour = "", TERM: terminal = "", COLUMNS: given = "" }: Environment["variables"],
): Screen | null {
  if (isTTY !== true) return null;
  // Some terminals, such as that of a container, report a width of 0.
  const width = columns || Number.parseInt(given, 10) || DEFAULT_COLUMNS;
  return { columns: width, rows: rows || 24, colours: noColour === "" && terminal !== "dumb" };
}

async function readText(path: string) {
  if (path === "-") return text(process.stdin);
  return readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === "ENOENT" ? "there is no such file" : `it cannot be read (${cause.code})`;
    throw misuse(`${path}: ${why}`, { cause });
  });
}
