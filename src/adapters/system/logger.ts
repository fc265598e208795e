import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { type LoggerOptions, pino } from "pino";
import type { Mask } from "../../domain/text/mask.ts";
import type { LogLevel } from "./log-level.ts";
import { readableLine } from "./readable-line.ts";

export type LogMethod = Exclude<LogLevel, "silent">;
export type LogFields = Readonly<Record<string, unknown>>;

export type Logger = ReturnType<typeof createLogger>;

export interface LoggerSettings {
  readonly level: LogLevel;
  /** Format of log lines. "json": one object per line. "readable": for a terminal. */
  readonly format: "json" | "readable";
  /** True if the readable format uses colours; default true. */
  readonly colours?: boolean;
  /** Where lines are written: a file descriptor, or an object with `write`. */
  readonly destination: number | { write(text: string): unknown };
  readonly mask: Mask;
}

/** Limit on the memory for lines that the reader has not consumed. Beyond it lines are dropped. */
const BUFFER_LIMIT_BYTES = 16 * 1024 * 1024;

/**
 * Number of collected characters at which lines are written. A write blocks the event loop for some 20 µs at any size,
 * so lines are collected.
 */
const WORTH_A_WRITE_CHARACTERS = 64 * 1024;
const LONGEST_DELAY_MS = 50;
/** Longest time that a process waits at its end for the reader of its log. */
const LAST_WRITE_MS = 1_000;

export function createLogger(settings: LoggerSettings) {
  const { mask } = settings;
  const isReadable = settings.format === "readable";
  const { colours = true } = settings;
  const time = isoTime();
  const options: LoggerOptions = {
    level: settings.level,
    base: null,
    timestamp: () => `,"time":"${time()}"`,
    formatters: { level: (label) => ({ level: label }) },
    hooks: { streamWrite: isReadable ? (line) => readableLine(mask(line), colours) : mask },
  };
  const stream = openDestination(settings.destination);
  const log = pino(options, { write: stream.write });
  return {
    log: (level: LogMethod, fields: LogFields, message: string) => log[level](fields, message),
    /**
     * Writes a line whose `members` are already encoded JSON without secrets, so that nothing is serialised or masked
     * again. For lines that are written several times per transaction; costs a third of `log`.
     */
    logMembers: (level: LogMethod, members: string, message: string) => {
      if (!log.isLevelEnabled(level)) return;
      const line = `{"level":"${level}","time":"${time()}",${members},"msg":${JSON.stringify(message)}}\n`;
      stream.write(isReadable ? readableLine(line, colours) : line);
    },
    /** True if lines of this level are written. If not, a caller need not build the fields of a line. */
    enabled: (level: LogMethod) => log.isLevelEnabled(level),
    /** Resolves when all lines are written, or after a limited wait. Called last before the process ends. */
    flush: stream.flush,
  };
}

/** Formats the current time. The text is cached, because many lines have the same millisecond. */
function isoTime() {
  let atMs = Number.NaN;
  let text = "";
  return () => {
    const nowMs = Date.now();
    if (nowMs !== atMs) {
      atMs = nowMs;
      text = new Date(nowMs).toISOString();
    }
    return text;
  };
}

/**
 * Opens the log's destination. It writes asynchronously, so that the event loop never waits for the log. Lines are
 * written when enough have been collected, or 50 ms later, or at the end of the process. Only SIGKILL can lose the last
 * 50 ms.
 */
function openDestination(destination: LoggerSettings["destination"]) {
  if (typeof destination !== "number") {
    return { write: (text: string) => void destination.write(text), flush: async () => undefined };
  }
  const stream = pino.destination({
    dest: destination,
    sync: false,
    maxLength: BUFFER_LIMIT_BYTES,
    contentMode: "buffer",
  });
  let waiting = "";
  let timer: NodeJS.Timeout | null = null;
  let isWriting = false;
  stream.on("drain", () => {
    isWriting = false;
  });
  const leave = () => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    // Write the lines as a buffer: for text, the stream measures its whole backlog at every write.
    const text = waiting;
    waiting = "";
    if (text === "") return;
    isWriting = true;
    try {
      stream.write(Buffer.from(text) as unknown as string);
    } catch {
      // Ignore the error: the log's reader is gone (EPIPE), or the pipe is full (EAGAIN).
    }
  };
  return {
    write: (text: string) => {
      waiting += text;
      if (waiting.length >= WORTH_A_WRITE_CHARACTERS) leave();
      else timer ??= setTimeout(leave, LONGEST_DELAY_MS).unref();
    },
    flush: async () => {
      leave();
      // Wait for a write in progress, or lines would be split.
      if (!isWriting) return;
      // The stream never drains if its reader is gone, so the wait has a limit.
      const drained = once(stream, "drain").catch(() => undefined);
      await Promise.race([drained, pause(LAST_WRITE_MS, null, { ref: false })]);
    },
  };
}
