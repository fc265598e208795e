import { beforeEach, describe, expect, it } from "vitest";
import { createStatusLine, type StatusLine } from "../../src/main/status-line.ts";

let nowMs: number;
let tick: (() => void) | null;
let screen: string;
let status: StatusLine;

const ESCAPE = String.fromCharCode(27);
const SEQUENCES = new RegExp(`(${ESCAPE}\\[\\d*[AJ]|\\r)`);
const UP = new RegExp(`^${ESCAPE}\\[(\\d+)A$`);

/** Applies the control sequences that the status line uses to a screen of text. */
function write(text: string): void {
  for (const part of text.split(SEQUENCES)) {
    const lines = screen.split("\n");
    const up = UP.exec(part);
    if (part === "\r") screen = [...lines.slice(0, -1), ""].join("\n");
    else if (up !== null) screen = [...lines.slice(0, -1 - Number(up[1])), ""].join("\n");
    else if (part !== `${ESCAPE}[J`) screen += part;
  }
}

const pass = (ms: number) => {
  nowMs += ms;
  tick?.();
};

beforeEach(() => {
  nowMs = 0;
  tick = null;
  screen = "";
  status = createStatusLine({
    columns: () => 40,
    write,
    nowMs: () => nowMs,
    every: (_, next) => {
      tick = next;
      return () => {
        tick = null;
      };
    },
  });
});

describe("the status line of a terminal", () => {
  it("shows nothing for work of less than a second", () => {
    const busy = status.busy("asking");
    pass(900);
    expect(screen).toBe("");
    busy.end();
    expect(tick).toBeNull();
  });

  it("shows what the command waits for and for how long, and leaves nothing behind", () => {
    const busy = status.busy("asking");
    pass(3_200);
    expect(screen).toMatch(/^\S asking \(3 s\)$/);
    busy.update("12 of 100 sent\n  bar\n  bar");
    pass(100);
    expect(screen).toMatch(/^\S 12 of 100 sent \(3 s\)\n {2}bar\n {2}bar$/);
    busy.end();
    expect(screen).toBe("");
    expect(tick).toBeNull();
  });

  it("keeps other output above it", () => {
    const busy = status.busy("asking");
    pass(2_000);
    status.above(() => write("killed node-1\n"));
    expect(screen).toMatch(/^killed node-1\n\S asking \(2 s\)$/);
    busy.end();
    expect(screen).toBe("killed node-1\n");
  });

  it("is cut before the edge, because a wrapped line could not be erased", () => {
    status.busy("x".repeat(100));
    pass(1_000);
    expect(screen.length).toBe(39);
  });

  it("shows the work that began last, and the other one again after it", () => {
    status.busy("outer");
    pass(2_000);
    const inner = status.busy("inner");
    pass(100);
    expect(screen).toContain("inner");
    inner.end();
    pass(100);
    expect(screen).toContain("outer");
  });
});
