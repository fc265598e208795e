/** Progress of `demo`, `chaos` and `bench`: bars on a terminal, and elsewhere a line every few seconds. */
import type { ProgressOutput } from "../../process-output.ts";

export interface Progress {
  /** Sets the text of the step that runs now. */
  phase(text: string): void;
  update(accepted: number, confirmed: number): void;
  /** Prints a line that stays: an event, such as the kill of a node. */
  say(line: string): void;
  end(): void;
}

const WIDTH = 32;
/** Longest silence without a terminal: someone who watches a log must see that the work goes on. */
export const LONGEST_SILENCE_MS = 3_000;

export function createProgress(total: number, output: ProgressOutput): Progress {
  return output.isTerminal ? liveProgress(total, output) : plainProgress(total, output);
}

function liveProgress(total: number, { busy, say }: ProgressOutput): Progress {
  const shown = busy("starting");
  let step = "starting";
  let bars = "";
  const draw = () => shown.update(`${step}${bars}`);
  return {
    phase: (text) => {
      step = text;
      draw();
    },
    update: (accepted, confirmed) => {
      bars = `\n  accepted   ${bar(accepted, total)}\n  confirmed  ${bar(confirmed, total)}`;
      draw();
    },
    say,
    end: shown.end,
  };
}

function plainProgress(total: number, { say, nowMs, every }: ProgressOutput): Progress {
  const startedMs = nowMs();
  let saidMs = startedMs;
  let step = "starting";
  let counts = "";
  const speak = (line: string) => {
    saidMs = nowMs();
    say(line);
  };
  const stop = every(LONGEST_SILENCE_MS / 3, () => {
    if (nowMs() - saidMs < LONGEST_SILENCE_MS * 0.6) return;
    speak(`${Math.round((nowMs() - startedMs) / 1_000)} s: ${step}${counts}`);
  });
  return {
    phase: (text) => {
      step = text;
    },
    update: (accepted, confirmed) => {
      counts = `; accepted ${accepted}, confirmed ${confirmed} of ${total}`;
    },
    say: speak,
    end: stop,
  };
}

function bar(done: number, total: number) {
  const filled = Math.min(WIDTH, Math.round((done / total) * WIDTH));
  return `${"█".repeat(filled)}${"░".repeat(WIDTH - filled)} ${String(done).padStart(String(total).length)}/${total}`;
}
