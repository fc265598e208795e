/** Runs `fencepost demo` as in a fresh clone of the repository. */
import { describe, expect, it } from "vitest";
import { spawnFencepost } from "../../support/node-process.ts";
import { waitUntil } from "../../support/wait-until.ts";

const row = (name: string, value: string) => new RegExp(`^ {2}${name} +${value}$`, "m");

describe("fencepost demo", () => {
  it("reports zero losses after killing a node and freezing another", async () => {
    const child = spawnFencepost(["demo", "--transactions", "120"]);
    const { code } = await child.exited;
    expect(child.stderr()).toBe("");
    expect(code).toBe(0);
    const said = child.stdout();
    expect(said).not.toContain("\u001b");
    expect(said).toMatch(/^killed node-\d, which acted for \d signers \(kill -9\)$/m);
    expect(said).toMatch(/^froze node-\d past its lease \(SIGSTOP\)$/m);
    expect(said).toMatch(/^accepted 120, confirmed 120 of 120$/m);
    expect(said).toMatch(row("accepted", "120"));
    expect(said).toMatch(row("confirmed", "120"));
    for (const nothing of ["lost", "duplicate", "gaps"]) expect(said).toMatch(row(nothing, "0"));
    expect(said).toMatch(row("takeovers", "[1-9]\\d*"));
    expect(said).toMatch(row("time to take over", "\\d+\\.\\d s"));
  }, 180_000);

  it("leaves no process running if the demo is interrupted", async () => {
    const child = spawnFencepost(["demo"]);
    await waitUntil(() => child.stdout().includes("confirmed"), "it is under way", { giveUpMs: 150_000 });
    child.signal("SIGTERM");
    expect((await child.exited).code).toBe(1);
    expect(child.stderr()).toBe("fencepost: interrupted; everything was stopped\n");
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
