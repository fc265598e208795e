import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { askOnTerminal } from "../../src/main/ask.ts";

const stream = (isTTY: boolean) => Object.assign(new PassThrough(), { isTTY });

describe("a question on the terminal", () => {
  it("is written to standard error and answered by a line of standard input", async () => {
    const [stdin, stderr] = [stream(true), stream(true)];
    const answer = askOnTerminal({ stdin, stderr })?.("Stop? [y/N] ");
    stdin.write("yes\n");
    expect(await answer).toBe("yes");
    expect(String(stderr.read())).toBe("Stop? [y/N] ");
  });

  it("is answered with nothing by the end of the input", async () => {
    const stdin = stream(true);
    const answer = askOnTerminal({ stdin, stderr: stream(true) })?.("Stop? [y/N] ");
    stdin.end();
    expect(await answer).toBe("");
  });

  it("cannot be asked if standard input or standard error is no terminal", () => {
    expect(askOnTerminal({ stdin: stream(false), stderr: stream(true) })).toBeNull();
    expect(askOnTerminal({ stdin: stream(true), stderr: stream(false) })).toBeNull();
  });
});
