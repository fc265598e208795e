/**
 * SIGUSR1 makes Node open V8's inspector, which lets anyone who reaches the port read all memory of the process, keys
 * included.
 */
import { readdirSync, readlinkSync } from "node:fs";
import { expect } from "vitest";
import { it } from "../support/integration.ts";
import { read, untilThere } from "../support/signing-child.ts";
import { transfer } from "../support/transfers.ts";

const LISTENING = "0A";

/** Local addresses, as the kernel formats them, on which the process listens. */
function listening(pid: number): readonly string[] {
  const files = readdirSync(`/proc/${pid}/fd`).map((file) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${file}`);
    } catch {
      return "";
    }
  });
  const sockets = [...`${read("/proc/net/tcp")}${read("/proc/net/tcp6")}`.split("\n")].map((row) =>
    row.trim().split(/\s+/),
  );
  return sockets
    .filter((row) => row[3] === LISTENING && files.includes(`socket:[${row[9]}]`))
    .map((row) => row[1] ?? "");
}

// protects [Signers] bin/fencepost.js, src/main/signing-main.ts, src/main/node/serve-keys.ts
it("SIGUSR1 opens no inspector on a node or its signing process, and both keep running", async ({
  simulated,
  nodes,
}) => {
  const node = await nodes.start(simulated.url, { FENCEPOST_SIGNING: "process" });
  const signing = await untilThere(node.pid);
  const before = [listening(node.pid), listening(signing)];
  expect(before[1], "the signing process listens nowhere").toEqual([]);
  for (const pid of [signing, node.pid]) process.kill(pid, "SIGUSR1");
  // After the signals, send two transactions and wait until they are confirmed. That takes long enough: an inspector
  // would open within milliseconds.
  for (const index of [0, 1]) {
    const { txId } = await node.client.send(transfer(index));
    expect(await node.client.waitFor(txId)).toMatchObject({ state: "CONFIRMED" });
  }
  expect([listening(node.pid), listening(signing)]).toEqual(before);
  expect(node.stderr()).not.toMatch(/debugger/i);
  expect(await untilThere(node.pid), "the same process").toBe(signing);
});
