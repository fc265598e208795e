import { ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { describe, expect, it } from "vitest";
import { launch } from "../../../src/main/node/open-signing.ts";

const PIPED = { stdio: ["ignore", "ignore", "inherit", "pipe"] } satisfies SpawnOptions;

/**
 * Imitates Node when no more files can be opened: it returns a child without streams and reports the error a moment
 * later.
 */
function withoutStreams(): ChildProcess {
  const child = new ChildProcess();
  process.nextTick(() => child.emit("error", new Error("spawn EMFILE")));
  return child;
}

describe("a signing process that the operating system cannot start", () => {
  it.each([
    ["is reported a moment later", "ENOENT", () => spawn("/nowhere/node", [], PIPED)],
    ["leaves no channel", "EMFILE", withoutStreams],
    // protects [Signers] src/adapters/evm/signers/process/signing-process.ts, src/main/node/open-signing.ts
  ])("counts as ended if the start error %s (%s)", async (_how, code, start) => {
    const launched = launch(start);
    expect(await launched.ended).toContain(code);
    launched.channel.on("error", () => undefined);
    launched.channel.write("nobody reads this\n");
    launched.hold(false);
    launched.kill();
  });
});
