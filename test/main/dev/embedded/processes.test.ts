import { spawn } from "node:child_process";
import { realpath } from "node:fs/promises";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { assertPortFree, freePort } from "../../../../src/main/dev/embedded/loopback-port.ts";
import { findProcess, parsePsLine, run, sendSignal, waitForExit } from "../../../../src/main/dev/embedded/processes.ts";
import { waitUntil } from "../../../support/wait-until.ts";

describe("the check of a process by its pid", () => {
  test("distinguishes processes by more than the pid", async () => {
    const self = await findProcess(process.pid);
    expect(self?.identity).toBe((await findProcess(process.pid))?.identity);
    expect(self?.identity).not.toBe((await findProcess(process.ppid))?.identity);
    if (process.platform === "linux") expect(self?.workingDirectory).toBe(await realpath(process.cwd()));
  });

  test("does not find a process that does not exist", async () => {
    expect(await findProcess(999_999_999)).toBeNull();
  });

  test("does not find a zombie", async () => {
    // The shell replaces itself by a program that never reaps its child, so the child becomes a zombie. The child ends
    // when its pipe is closed.
    const parent = spawn("/bin/sh", ["-c", "sh -c 'read _' <&3 3<&- & echo $!; exec sleep 600 3<&-"], {
      stdio: ["ignore", "pipe", "ignore", "pipe"],
    });
    const ended = new Promise((resolve) => parent.on("exit", resolve));
    const pid = await new Promise<number>((resolve) => parent.stdout?.once("data", (text) => resolve(Number(text))));
    await waitUntil(
      async () => (await findProcess(parent.pid ?? 0))?.command.startsWith("sleep"),
      "the shell became another program",
    );
    expect(await findProcess(pid)).not.toBeNull();
    (parent.stdio[3] as Socket).end();
    expect(await waitForExit(systemClock, pid, 10_000)).toBe(true);
    expect(() => process.kill(pid, 0)).not.toThrow();
    parent.kill();
    await ended;
  });

  test("reports after a timeout that the process has not ended", async () => {
    expect(await waitForExit(systemClock, process.pid, 30)).toBe(false);
  });

  test("does not fail if a signal is sent to an ended process", () => {
    expect(() => sendSignal(999_999_999, "SIGTERM")).not.toThrow();
  });

  test.each([
    [
      "Ss   Sun Nov 15 04:23:48 2026     /opt/native/bin/postgres -D /Users/me/my app/data -c port=1",
      {
        identity: "Sun Nov 15 04:23:48 2026",
        workingDirectory: null,
        command: "/opt/native/bin/postgres -D /Users/me/my app/data -c port=1",
      },
    ],
    [
      "S+   Tue Mar  3 09:01:02 2026     node\n",
      { identity: "Tue Mar 3 09:01:02 2026", workingDirectory: null, command: "node" },
    ],
    ["Z    Sun Nov 15 04:23:48 2026     <defunct>", null],
    ["", null],
  ])("uses ps if there is no /proc: %j", (line, expected) => {
    expect(parsePsLine(line)).toEqual(expected);
  });
});

describe("a short command", () => {
  test("returns its output and exit code", async () => {
    expect(await run("/bin/sh", ["-c", "echo out; echo err >&2; exit 3"])).toEqual({
      code: 3,
      stdout: "out\n",
      stderr: "err\n",
    });
  });

  test("fails with the reason if it cannot be started", async () => {
    expect(await run("/no/such/command", [])).toMatchObject({ code: null, stderr: expect.stringContaining("ENOENT") });
  });
});

test("a free port is one that can be listened on", async () => {
  await expect(assertPortFree(await freePort())).resolves.toBeUndefined();
  await expect(assertPortFree(70_000)).rejects.toThrow(/65536/);
});
