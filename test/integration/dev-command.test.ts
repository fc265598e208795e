/** `fencepost dev` when it is killed or interrupted, or when its database or chain ends. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { type Address, createClient, type Hex } from "../../src/client/index.ts";
import { DEV, isListening, it, linesOf, portIn } from "../support/command-line.ts";
import { RECIPIENT } from "../support/integration.ts";
import { waitUntil } from "../support/wait-until.ts";

describe("fencepost dev", () => {
  it("exits with one line if its chain panics", async ({ seeded }) => {
    const dev = seeded.run(DEV);
    const client = createClient({ url: (await dev.ready).url, repeat: false });
    const [lane] = await client.signers();
    // Contract code that fails with Panic(2^256 − 1). A simulation cannot refuse it, because the simulating EVM itself
    // panics on it.
    const bytecode: Hex = `0x634e487b7160e01b5f527f${"ff".repeat(32)}60045260245ffd`;
    const sending = client.send({ signer: lane?.signer as Address, payload: { bytecode } });
    await expect(sending).rejects.toMatchObject({ status: 503 });
    expect(await dev.exited).toEqual({ code: 1, signal: null });
    expect(linesOf(dev.stderr()).at(-1)).toMatch(
      /^fencepost: the local chain's process exited \(.*panicked at .*start again$/,
    );
    expect(await isListening(portIn(dev.stderr(), /PostgreSQL \S+ on port (\d+)/))).toBe(false);
  });

  // protects [Attacks] src/main/dev/dev.ts
  it("restarts its database if the database was killed", async ({ seeded }) => {
    const dev = seeded.run(DEV);
    const client = createClient({ url: (await dev.ready).url, repeat: false });
    const [lane] = await client.signers();
    const signer = lane?.signer as Address;
    const before = await client.send({ signer, payload: { to: RECIPIENT, value: "1" } });
    const home = /data in (.+)$/m.exec(dev.stderr())?.[1] as string;
    const postmaster = Number(linesOf(readFileSync(join(home, "postgres", "data", "postmaster.pid"), "utf8"))[0]);
    process.kill(postmaster, "SIGKILL");
    await waitUntil(() => /PostgreSQL is back on port \d+/.test(dev.stderr()), "the database is back");
    expect(dev.stderr()).toMatch(/PostgreSQL \(pid \d+\) ended: .*; it is started again/);
    const send = () => client.send({ signer, requestId: "after", payload: { to: RECIPIENT, value: "2" } });
    const after = await waitUntil(() => send().catch(() => null), "the node accepts again");
    for (const { txId } of [before, after]) {
      expect(await client.waitFor(txId)).toMatchObject({ state: "CONFIRMED" });
    }
  });

  it("refuses to start if another fencepost dev uses the same directory", async ({ seeded }) => {
    const first = seeded.run(DEV);
    const { url } = await first.ready;
    const second = seeded.run(DEV);
    expect((await second.exited).code).toBe(1);
    expect(second.stdout()).toBe("");
    expect(second.stderr()).toMatch(/^fencepost: .*(already|another|in use).*\n$/i);
    expect((await fetch(`${url}/readyz`)).status, "the first one is undisturbed").toBe(200);
  });

  it("starts again with its old database after it was killed", async ({ seeded }) => {
    const first = seeded.run(DEV);
    await first.ready;
    first.signal("SIGKILL");
    await first.exited;
    const second = seeded.run(DEV);
    const { url } = await second.ready;
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  it("leaves no process running if it is interrupted during start", async ({ seeded }) => {
    const dev = seeded.run(DEV);
    const said = await waitUntil(() => /PostgreSQL \S+ on port (\d+)/.exec(dev.stderr()), "the database is up");
    dev.signalGroup("SIGINT");
    expect(await dev.exited, dev.stderr()).toEqual({ code: 0, signal: null });
    expect(await isListening(Number(said[1]))).toBe(false);
  });
});
