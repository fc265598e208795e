/** Runs `fencepost demo` as in a fresh clone of the repository. */
import { describe, expect, it } from "vitest";
import { spawnFencepost } from "../../support/node-process.ts";
import { waitUntil } from "../../support/wait-until.ts";

const row = (name: string, value: string) => new RegExp(`^ {2}${name} +${value}$`, "m");

describe("fencepost demo", () => {
  it("reports zero losses after killing a node and freezing another", async () => {
    const child = spawnFencepost(["demo", "--transactions", "120"]);
    const { code } = await child.exited;
    expect(code, child.stderr()).toBe(0);
    const progress = child.stderr();
    expect(progress).not.toContain("\u001b");
    expect(progress).toMatch(/^killed node-\d, which acted for \d signers? \(kill -9\)$/m);
    expect(progress).toMatch(/^froze node-\d past its lease \(SIGSTOP\)$/m);
    const said = child.stdout();
    expect(said).toMatch(row("accepted", "120"));
    expect(said).toMatch(row("confirmed", "120"));
    for (const nothing of ["lost", "duplicate", "gaps"]) expect(said).toMatch(row(nothing, "0"));
    expect(said).toMatch(row("takeovers", "[1-9]\\d*"));
    expect(said).toMatch(row("time to take over", "\\d+\\.\\d s"));
  }, 180_000);

  it("leaves no process running if the demo is interrupted", async () => {
    const child = spawnFencepost(["demo"]);
    await waitUntil(() => child.stderr().includes("confirmed"), "it is under way", { giveUpMs: 150_000 });
    child.signal("SIGTERM");
    expect((await child.exited).code).toBe(1);
    expect(child.stderr()).toMatch(/^fencepost: interrupted; everything was stopped\n$/m);
    expect(child.stdout(), "no report").toBe("");
    // If a child process survived, the process group would still exist.
    await waitUntil(() => isGone(() => child.signalGroup("SIGCONT")), "the whole group has ended");
  }, 240_000);
});

function isGone(signal: () => void): boolean {
  try {
    signal();
    return false;
  } catch {
    return true;
  }
}
