/**
 * Tests the signing process of a real node: what other processes can see of it, and what happens to transactions when
 * it is killed.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { openSigningProcess } from "../../src/adapters/evm/signers/process/signing-process.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { launch } from "../../src/main/node/open-signing.ts";
import type { Signer } from "../../src/ports/signer.ts";
import { type CONTRACT_KEYS, describeSignerContract } from "../contracts/signer.contract.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { it, KEYS } from "../support/integration.ts";
import { startLoad } from "../support/load.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { isGone, read, untilThere } from "../support/signing-child.ts";
import { wideBounds } from "../support/signing-process.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const PROCESS = { FENCEPOST_SIGNING: "process" };

describe("the signing process of a node", () => {
  // protects [Signers] src/adapters/evm/signers/process/signing-process.ts, src/main/node/open-signing.ts
  it("exposes no key in its environment or arguments", async ({ simulated, nodes, database }) => {
    const node = await nodes.start(simulated.url, PROCESS);
    const first = await untilThere(node.pid);
    const shown = read(`/proc/${first}/environ`) + read(`/proc/${first}/cmdline`);
    expect(shown).not.toContain("FENCEPOST");
    for (const key of KEYS) expect(shown).not.toContain(key.slice(2));
    const caller = new PersistentCaller(() => node.client);
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 4, batch: 5 });
    let accepted = 0;
    for (let killed = 0; killed < 4; killed++) {
      await waitUntil(() => load.accepted.length > accepted + 20, "more is accepted, whether or not it can be signed");
      accepted = load.accepted.length;
      process.kill(await untilThere(node.pid), "SIGKILL");
    }
    await load.stop();
    await untilSettled(database, load.accepted.length);
    expect(await untilThere(node.pid)).not.toBe(first);
    const witnessed = simulated.chain.witness.map(({ hash }) => hash);
    await audit({ database, rpcUrl: simulated.url, witnessed });
    await waitUntil(() => node.stderr().includes("SIGNER_BACK"), "its return is announced");
    expect(node.stderr()).toContain("SIGNER_AWAY");
  });

  // protects [Signers] src/main/node/serve-keys.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("ends at once when its node is killed", async ({ simulated, nodes }) => {
    const node = await nodes.start(simulated.url, PROCESS);
    const signing = await untilThere(node.pid);
    node.signal("SIGKILL");
    await waitUntil(() => isGone(signing), "it is gone", { giveUpMs: 5_000 });
  });

  // protects [Signers] src/main/node/serve-keys.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("stays until its node has drained if the whole process group gets SIGTERM", async ({ simulated, nodes }) => {
    const node = await nodes.start(simulated.url, PROCESS);
    const signing = await untilThere(node.pid);
    // The chain does not answer the estimate for this create. So the create stays in progress and the node keeps
    // draining.
    simulated.faults.inject({ kind: "hang" }, { method: "eth_estimateGas", times: 1 });
    const inHand = node.client.send(transfer(0)).catch(() => null);
    await waitUntil(() => simulated.calls("eth_estimateGas") > 0, "a create is under way");
    node.signalGroup("SIGTERM");
    const isDraining = async () => (await fetch(`${node.url}/readyz`)).status === 503;
    await waitUntil(isDraining, "readyz says no");
    expect(isGone(signing)).toBe(false);
    expect(await node.exited).toMatchObject({ code: 0 });
    await inHand;
    await waitUntil(() => isGone(signing), "it is gone", { giveUpMs: 5_000 });
  });
});

const CHAINS = [1, 137];
const BUILT = new URL("../../dist/main/node/open-signing.js", import.meta.url).href;

/** Loads the built file, because the signing process does not run TypeScript. */
async function openBuilt(privateKeys: typeof CONTRACT_KEYS): Promise<Signer> {
  const { openSigning } = (await import(BUILT)) as typeof import("../../src/main/node/open-signing.ts");
  const none = { privateKeyFiles: [], mnemonic: null, keystore: null, nodeSigners: [], remote: null };
  const signers = {
    ...none,
    privateKeys: [...privateKeys],
    awsKmsKeyIds: [],
    gcpKmsKeyVersions: [],
    vaultKeyPaths: [],
  };
  const entropy = { random: () => 0, uuid: () => "" };
  const ports = { telemetry: { emit: () => undefined }, entropy, bounds: Promise.resolve(wideBounds(CHAINS)) };
  const signer = await openSigning({ signers, signing: "process" }, ports);
  return { ...signer, sign: (address, transactions) => signer.sign(address, transactions, systemClock.monotonicMs()) };
}

const SNAPSHOT = "SIGUSR2";
const SHIPPED = fileURLToPath(new URL("../../dist/bundle/signing-main.js", import.meta.url));
const PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow";

/** The text itself, and its base64 encodings at each of the three possible byte alignments. */
function spellingsOf(text: string): readonly string[] {
  const shifted = [0, 1, 2].map((shift) => Buffer.from(`${"-".repeat(shift)}${text}`).toString("base64"));
  return [text, ...shifted.map((each) => each.slice(4, -4))];
}

describe("the heap of a signing process", () => {
  // protects [Signers] bin/fencepost.js, src/main/signing-main.ts, src/main/node/serve-keys.ts
  it("contains no key as text", async ({ onTestFinished }) => {
    const directory = await makeTemporaryDirectory();
    onTestFinished(() => directory.remove());
    const newKeys = (count: number) => Array.from({ length: count }, () => randomBytes(32).toString("hex"));
    const [inConfiguration, inFile] = [newKeys(5), newKeys(1)];
    const file = join(directory.path, "key");
    await writeFile(file, `${inFile.join("\n")}\n`, { mode: 0o600 });
    const argv = [`--heapsnapshot-signal=${SNAPSHOT}`, `--diagnostic-dir=${directory.path}`, SHIPPED];
    let pid = 0;
    const start = () => {
      const child = spawn(process.execPath, argv, { stdio: ["ignore", "ignore", "inherit", "pipe"], env: {} });
      pid = child.pid as number;
      return child;
    };
    const mnemonic = { phrase: PHRASE, count: 2, path: "m/44'/60'/0'/0" };
    const sources = { privateKeys: inConfiguration.map((key) => `0x${key}`), privateKeyFiles: [file], mnemonic };
    const beginning = Promise.resolve({ sources, environment: {}, bounds: wideBounds([1]) });
    const signer = await openSigningProcess({
      launch: () => launch(start),
      beginning,
      clock: systemClock,
      entropy: { random: () => 0 },
    });
    onTestFinished(() => signer.close());
    expect(signer.addresses()).toHaveLength(8);
    process.kill(pid, SNAPSHOT);
    const text = await waitUntil(() => wholeSnapshot(directory.path), "the heap is written");
    const kept = [...inConfiguration, ...inFile, PHRASE].filter((secret) =>
      spellingsOf(secret).some((spelling) => text.includes(spelling)),
    );
    expect(kept).toEqual([]);
  });
});

/** The heap snapshot; null if it is missing or incomplete. */
function wholeSnapshot(directory: string): string | null {
  const name = readdirSync(directory).find((each) => each.endsWith(".heapsnapshot"));
  const text = name === undefined ? "" : read(join(directory, name));
  return /\]\s*\}\s*$/.test(text) ? text : null;
}

describeSignerContract("a process of its own", openBuilt, { runs: 25, chainIds: CHAINS });
