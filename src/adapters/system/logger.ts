import { type LoggerOptions, pino, stdTimeFunctions } from "pino";
import type { LogLevel } from "./log-level.ts";
import { readableLine } from "./readable-line.ts";
import { createSecretMask } from "./secret-mask.ts";

export type LogMethod = Exclude<LogLevel, "silent">;
export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  log(level: LogMethod, fields: LogFields, message: string): void;
  /** Lets a caller skip building fields that nobody would see. */
  enabled(level: LogMethod): boolean;
  /** Writes what is still buffered, synchronously: the last thing before the process ends. */
  flush(): void;
}

export interface LoggerSettings {
  readonly level: LogLevel;
  /** "json" is one object a line, for machines; "readable" is for a person at a terminal. */
  readonly format: "json" | "readable";
  /** A file descriptor, or anything that takes text. */
  readonly destination: number | { write(text: string): unknown };
  /** Texts that must never appear, whoever puts them into a message. */
  readonly secrets?: readonly string[];
}

/** A reader that stopped reading costs at most this much memory; then lines are dropped instead of the process. */
const BUFFER_LIMIT_BYTES = 16 * 1024 * 1024;

export function createLogger(settings: LoggerSettings): Logger {
  const mask = createSecretMask(settings.secrets ?? []);
  const present = settings.format === "readable" ? (line: string) => readableLine(mask(line)) : mask;
  const options: LoggerOptions = {
    level: settings.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    hooks: { streamWrite: present },
  };
  const stream = openDestination(settings.destination);
  const log = pino(options, stream);
  return {
    log: (level, fields, message) => log[level](fields, message),
    enabled: (level) => log.isLevelEnabled(level),
    flush: () => flush(stream),
  };
}

type Destination = ReturnType<typeof openDestination>;

/** Asynchronous, and still one `write` per line while the reader keeps up: the event loop never waits for a log. */
function openDestination(destination: LoggerSettings["destination"]) {
  if (typeof destination !== "number") return { write: (text: string) => void destination.write(text) };
  return pino.destination({ dest: destination, sync: false, maxLength: BUFFER_LIMIT_BYTES });
}

function flush(stream: Destination): void {
  if (!("flushSync" in stream)) return;
  try {
    stream.flushSync();
  } catch {
    // The reader is gone (EPIPE, EAGAIN on a full pipe). There is nobody left to tell.
  }
}
