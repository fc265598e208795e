/** A line at the bottom of the terminal that shows what a command waits for. Other output is written above it. */
import type { Busy } from "../adapters/cli/terminal.ts";

export interface StatusLine {
  busy(what: string): Busy;
  /** Erases the line, runs `write`, and draws the line again. */
  above(write: () => void): void;
}

/** The terminal that the line is drawn on, and the time. */
interface Ports {
  /** Columns of the terminal. */
  columns(): number;
  write(text: string): void;
  nowMs(): number;
  /** Calls `tick` regularly until the returned function is called. */
  every(ms: number, tick: () => void): () => void;
}

const FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
const FRAME_MS = 100;
/** Work that takes less is not shown: a line that flashes up and vanishes disturbs. */
const SHOWN_AFTER_MS = 1_000;

/** Draws nothing, if standard error is no terminal. */
export const NO_STATUS_LINE: StatusLine = {
  busy: () => ({ update: () => undefined, end: () => undefined }),
  above: (write) => write(),
};

interface Work {
  what: string;
  readonly startedMs: number;
}

export function createStatusLine({ columns, write, nowMs, every }: Ports): StatusLine {
  const running: Work[] = [];
  let drawn = 0;
  let frame = 0;
  let stop: (() => void) | null = null;
  const erase = () => {
    if (drawn > 0) write(`\r${drawn > 1 ? `\u001b[${drawn - 1}A` : ""}\u001b[J`);
    drawn = 0;
  };
  const draw = () => {
    erase();
    // Shows the work that began last: it is the part that the others wait for.
    const work = running.at(-1);
    const first = running[0];
    if (work === undefined || first === undefined) return;
    const ranMs = nowMs() - first.startedMs;
    if (ranMs < SHOWN_AFTER_MS) return;
    const [head = "", ...rest] = work.what.split("\n");
    const lines = [`${FRAMES[frame % FRAMES.length]} ${head} (${Math.floor(ranMs / 1_000)} s)`, ...rest];
    // A line that wraps could not be erased, so each is cut one column before the edge.
    write(lines.map((line) => line.slice(0, columns() - 1)).join("\n"));
    drawn = lines.length;
  };
  const tick = () => {
    frame++;
    draw();
  };
  return {
    busy(what) {
      const work: Work = { what, startedMs: nowMs() };
      running.push(work);
      stop ??= every(FRAME_MS, tick);
      return {
        update: (next) => {
          work.what = next;
        },
        end: () => {
          const at = running.indexOf(work);
          if (at >= 0) running.splice(at, 1);
          erase();
          if (running.length > 0) return;
          stop?.();
          stop = null;
        },
      };
    },
    above(writing) {
      erase();
      writing();
      draw();
    },
  };
}
