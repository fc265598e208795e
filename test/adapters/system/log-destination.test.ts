/** A log that cannot be written must neither end nor freeze the node. */
import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { openLog } from "../../../src/adapters/system/log-destination.ts";
import { ROOT } from "../../architecture/tree.ts";

/** A descriptor whose writes end as the test says: with a number of bytes, or with the code of an error. */
function scripted(outcomes: readonly (number | string)[] = [], takesNothing = false) {
  const written: string[] = [];
  let at = 0;
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly work: () => void }[] = [];
  const log = openLog(7, {
    write: (_, bytes, done) => {
      const outcome = outcomes[at++] ?? bytes.length;
      if (takesNothing) return;
      queueMicrotask(() => {
        if (typeof outcome === "string") return done(Object.assign(new Error(outcome), { code: outcome }), 0);
        written.push(bytes.subarray(0, outcome).toString());
        done(null, outcome);
      });
    },
    after: (ms, work) => {
      const timer = { atMs: nowMs + ms, work };
      timers.push(timer);
      return () => {
        timers = timers.filter((each) => each !== timer);
      };
    },
  });
  /** Lets time pass, and everything happen that is due by then. */
  const pass = async (ms: number) => {
    const untilMs = nowMs + ms;
    for (;;) {
      await new Promise(setImmediate);
      const [next] = timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      timers = timers.filter((each) => each !== next);
      nowMs = next.atMs;
      next.work();
    }
    nowMs = untilMs;
  };
  return { log, pass, written: () => written.join(""), writes: () => at };
}

describe("the destination of the log", () => {
  it("collects lines, and continues a write that was cut short", async () => {
    const { log, pass, written, writes } = scripted([3]);
    log.write("first\n");
    log.write("second\n");
    expect(writes()).toBe(0);
    await pass(50);
    expect(written()).toBe("first\nsecond\n");
    expect(writes()).toBe(2);
  });

  // protects [Processes that end, and those that only seem to] src/adapters/system/log-destination.ts
  it.each(["ENOSPC", "EIO", "EAGAIN"])("writes later what was refused with %s, and no line twice", async (code) => {
    const { log, pass, written } = scripted([code, code]);
    log.write("first\n");
    await log.flush();
    expect(written()).toBe("");
    log.write("second\n");
    await pass(3_000);
    expect(written()).toBe("first\nsecond\n");
  });

  it("gives up a pipe that nobody reads any more", async () => {
    const { log, pass, written, writes } = scripted(["EPIPE"]);
    log.write("first\n");
    await pass(50);
    log.write("second\n");
    await pass(5_000);
    expect([written(), writes()]).toEqual(["", 1]);
  });

  it("drops lines beyond its limit, as long as nothing can be written", async () => {
    const { log, pass, written } = scripted(["ENOSPC"]);
    const megabyte = `${"x".repeat(1024 * 1024 - 1)}\n`;
    for (let count = 0; count < 20; count++) log.write(megabyte);
    log.write("a last line\n");
    await pass(5_000);
    expect(written().length).toBe(16 * 1024 * 1024);
  });

  it("ends its wait at the end of the process, if a reader takes nothing", async () => {
    const { log, pass } = scripted([], true);
    log.write("line\n");
    let isOver = false;
    const flushed = log.flush().then(() => {
      isOver = true;
    });
    await pass(900);
    expect(isOver).toBe(false);
    await pass(200);
    expect(isOver).toBe(true);
    await flushed;
  });
});

describe("a process whose log cannot be written", () => {
  const directory = mkdtempSync(join(tmpdir(), "fencepost-log-"));
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  // protects [Processes that end, and those that only seem to] src/adapters/system/logger.ts
  it("goes on, and ends when it is done", async () => {
    const file = join(directory, "log");
    closeSync(openSync(file, "w"));
    // Opened for reading only: every write fails, on every platform.
    const descriptor = openSync(file, "r");
    const script = `
      import { createJiti } from "jiti";
      const { createLogger } = await createJiti(process.cwd()).import("./src/adapters/system/logger.ts");
      const logger = createLogger({ level: "info", format: "json", destination: 3, mask: (text) => text });
      logger.log("info", {}, "a line");
      setTimeout(() => { logger.log("info", {}, "another line"); process.stdout.write("alive"); }, 200);
      setTimeout(() => logger.flush().then(() => process.exit(0)), 300);
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe", descriptor],
    });
    let [stdout, stderr] = ["", ""];
    child.stdout?.on("data", (text) => {
      stdout += text;
    });
    child.stderr?.on("data", (text) => {
      stderr += text;
    });
    const code = await new Promise((resolve) => child.once("close", resolve));
    closeSync(descriptor);
    expect({ stdout, stderr, code }).toEqual({ stdout: "alive", stderr: "", code: 0 });
  });
});
