import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { type LoggerOptions, pino } from "pino";
import type { Mask } from "../../domain/mask.ts";
import type { LogLevel } from "./log-level.ts";
import { readableLine } from "./readable-line.ts";

export type LogMethod = Exclude<LogLevel, "silent">;
export type LogFields = Readonly<Record<string, unknown>>;

export type Logger = ReturnType<typeof createLogger>;

export interface LoggerSettings {
  readonly level: LogLevel;
  /** "json" is one object a line, for machines; "readable" is for a person at a terminal. */
  readonly format: "json" | "readable";
  /** Of the readable form; absent: it has them. */
  readonly colours?: boolean;
  /** A file descriptor, or anything that takes text. */
  readonly destination: number | { write(text: string): unknown };
  readonly mask: Mask;
}

/** A reader that stopped reading costs at most this much memory; then lines are dropped instead of the process. */
const BUFFER_LIMIT_BYTES = 16 * 1024 * 1024;

/** A write costs the event loop some 20 µs however much it holds: under load, hundreds of lines share one. */
const WORTH_A_WRITE_CHARACTERS = 64 * 1024;
const LONGEST_DELAY_MS = 50;
/** How long the end of a process waits for the reader of its log. */
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
     * For what is written several times for every transaction: `members` are JSON members already and hold no secret, so
     * nothing is serialised or searched again. Costs a third of `log`.
     */
    logMembers: (level: LogMethod, members: string, message: string) => {
      if (!log.isLevelEnabled(level)) return;
      const line = `{"level":"${level}","time":"${time()}",${members},"msg":${JSON.stringify(message)}}\n`;
      stream.write(isReadable ? readableLine(line, colours) : line);
    },
    /** Lets a caller skip building fields that would not be logged. */
    enabled: (level: LogMethod) => log.isLevelEnabled(level),
    /** Resolves when everything is written, or when its reader has let us wait: the last thing before the process ends. */
    flush: stream.flush,
  };
}

/** Many lines fall into one millisecond. */
function isoTime(): () => string {
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
 * Asynchronous: the event loop never waits for a log. Lines leave when some have come together, or a moment later; what
 * is left when the process ends is written then. Only a kill −9 can lose that moment.
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
    // As a buffer: of text the stream measures, with every write, everything that it has not written yet.
    const text = waiting;
    waiting = "";
    if (text === "") return;
    isWriting = true;
    try {
      stream.write(Buffer.from(text) as unknown as string);
    } catch {
      // The reader is gone (EPIPE, EAGAIN on a full pipe). Nothing is left to log to.
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
      // A write that is under way cannot be overtaken without tearing lines apart.
      if (!isWriting) return;
      // It drains no more where its reader is gone: then there is nothing to wait for.
      const drained = once(stream, "drain").catch(() => undefined);
      await Promise.race([drained, pause(LAST_WRITE_MS, null, { ref: false })]);
    },
  };
}
