import { type LoggerOptions, pino } from "pino";
import type { Mask } from "../../domain/text/mask.ts";
import { openLog } from "./log-destination.ts";
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

function openDestination(destination: LoggerSettings["destination"]) {
  if (typeof destination === "number") return openLog(destination);
  return { write: (text: string) => void destination.write(text), flush: async () => undefined };
}
