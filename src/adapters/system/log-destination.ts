/**
 * Writes the log to a file descriptor. The event loop never waits for it, and no error of it ends or blocks the process:
 * a disk can be full (ENOSPC), and a terminal closed (EIO). pino's own destination repeats such a write for ever when the
 * process ends, and so keeps it from ending.
 */
import { write as writeToFile } from "node:fs";

/** Limit on the memory for lines that could not be written yet. Beyond it lines are dropped. */
const BUFFER_LIMIT_BYTES = 16 * 1024 * 1024;

/**
 * Number of collected characters at which lines are written. A write blocks the event loop for some 20 µs at any size,
 * so lines are collected.
 */
const WORTH_A_WRITE_CHARACTERS = 64 * 1024;
const LONGEST_DELAY_MS = 50;
/** Pause after a failed write. Short, because a pipe may only be full for the moment (EAGAIN). */
const RETRY_MS = 100;
/** Longest time that a process waits at its end for the reader of its log. */
const LAST_WRITE_MS = 1_000;

/** The file system and the time, for tests to replace. */
interface Ports {
  write(descriptor: number, bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void;
  /** Calls `work` after so many ms, unless the process ends or the returned function is called before. */
  after(ms: number, work: () => void): () => void;
}

const SYSTEM: Ports = {
  write: writeToFile,
  after: (ms, work) => {
    const timer = setTimeout(work, ms).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Opens the log's destination. Lines are written when enough have been collected, or 50 ms later, or at the end of the
 * process. Only a crash can lose the last 50 ms.
 */
export function openLog(descriptor: number, { write, after }: Ports = SYSTEM) {
  let collected = "";
  let stopWaiting: (() => void) | null = null;
  let backlog: Buffer[] = [];
  let backlogBytes = 0;
  let isWriting = false;
  let isGone = false;
  let stopRetry: (() => void) | null = null;
  /** Ends the wait of `flush`. */
  let settle = (): void => undefined;

  const forget = () => {
    backlog = [];
    backlogBytes = 0;
  };
  const writeNext = () => {
    stopRetry?.();
    stopRetry = null;
    const [next] = backlog;
    if (next === undefined) return settle();
    isWriting = true;
    write(descriptor, next, (error, written) => {
      isWriting = false;
      if (error !== null) return failed(error);
      backlogBytes -= written;
      if (written < next.length) backlog[0] = next.subarray(written);
      else backlog.shift();
      writeNext();
    });
  };
  const failed = ({ code }: NodeJS.ErrnoException) => {
    // Nobody reads the pipe, and nobody ever will.
    isGone = code === "EPIPE";
    if (isGone) forget();
    else stopRetry = after(RETRY_MS, writeNext);
    settle();
  };
  const leave = () => {
    stopWaiting?.();
    stopWaiting = null;
    const bytes = Buffer.from(collected);
    collected = "";
    if (bytes.length === 0 || isGone || backlogBytes + bytes.length > BUFFER_LIMIT_BYTES) return;
    backlog.push(bytes);
    backlogBytes += bytes.length;
    if (!isWriting && stopRetry === null) writeNext();
  };
  return {
    write: (text: string) => {
      collected += text;
      if (collected.length >= WORTH_A_WRITE_CHARACTERS) leave();
      else stopWaiting ??= after(LONGEST_DELAY_MS, leave);
    },
    /** Resolves when all lines are written or a write fails, or after a limited wait: the reader may take nothing. */
    flush: async () => {
      leave();
      const settled = new Promise<void>((resolve) => {
        settle = resolve;
        after(LAST_WRITE_MS, resolve);
      });
      if (!isWriting) writeNext();
      await settled;
    },
  };
}
