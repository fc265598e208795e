import { describe, expect, it } from "vitest";
import { createProgress, LONGEST_SILENCE_MS } from "../../../src/main/dev/demo/progress.ts";
import type { ProgressOutput } from "../../../src/main/process-output.ts";

function outputOf(isTerminal: boolean) {
  let nowMs = 0;
  let tick: { readonly every: number; readonly run: () => void } | null = null;
  const lines: { readonly atMs: number; readonly line: string }[] = [];
  const shown: string[] = [];
  const output: ProgressOutput = {
    isTerminal,
    say: (line) => void lines.push({ atMs: nowMs, line }),
    busy: (what) => {
      shown.push(what);
      return { update: (next) => void shown.push(next), end: () => void shown.push("end") };
    },
    nowMs: () => nowMs,
    every: (every, run) => {
      tick = { every, run };
      return () => {
        tick = null;
      };
    },
  };
  const pass = (ms: number) => {
    for (const end = nowMs + ms; nowMs < end; ) {
      nowMs += tick?.every ?? ms;
      tick?.run();
    }
  };
  return { output, pass, lines, shown, isTicking: () => tick !== null };
}

describe("the progress of a long command", () => {
  // protects [The command line] src/main/dev/demo/progress.ts
  it("is never silent for more than a few seconds without a terminal, also if nothing happens", () => {
    const { output, pass, lines, isTicking } = outputOf(false);
    const progress = createProgress(500, output);
    progress.phase("starting node 2 of 3");
    pass(20_000);
    progress.update(120, 80);
    progress.say("killed node-1 (kill -9)");
    progress.phase("sending, fault 2 of 4");
    pass(20_000);
    progress.end();
    expect(isTicking()).toBe(false);
    const times = [0, ...lines.map(({ atMs }) => atMs), 40_000];
    const silences = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
    expect(Math.max(...silences)).toBeLessThanOrEqual(LONGEST_SILENCE_MS);
    expect(lines.length, "and not a line for every transfer").toBeLessThan(25);
    expect(lines[0]?.line).toMatch(/^\d+ s: starting node 2 of 3$/);
    expect(lines.at(-1)?.line).toMatch(/^\d+ s: sending, fault 2 of 4; accepted 120, confirmed 80 of 500$/);
  });

  it("is shown as bars below the current step on a terminal", () => {
    const { output, shown, lines } = outputOf(true);
    const progress = createProgress(100, output);
    progress.phase("sending");
    progress.update(50, 25);
    expect(shown.at(-1)).toMatch(
      /^sending\n {2}accepted {3}█{16}░{16} {2}50\/100\n {2}confirmed {2}█{8}░{24} {2}25\/100$/,
    );
    progress.say("killed node-1");
    expect(lines).toEqual([{ atMs: 0, line: "killed node-1" }]);
    progress.end();
    expect(shown.at(-1)).toBe("end");
  });
});
