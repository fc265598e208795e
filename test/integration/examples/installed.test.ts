/**
 * Runs each example as its reader does: copy it, `npm install` with the package that npm would publish, `npm start`.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { audit, untilSettled } from "../../support/audit.ts";
import { it, SHORT_LEASE, SIGNER } from "../../support/integration.ts";
import { spawnProgram, type Variables } from "../../support/node-process.ts";
import { npmInstall, pack } from "../../support/packed.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";
import { waitUntil } from "../../support/wait-until.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const TIMEOUT_MS = 400_000;

let directory: TemporaryDirectory;
beforeAll(async () => {
  directory = await makeTemporaryDirectory();
  pack(directory.path);
});
afterAll(() => directory?.remove());

function install(name: string): string {
  // As in a checkout: the example names the tarball two folders above it.
  const place = join(directory.path, "examples", name);
  cpSync(join(root, "examples", name), place, { recursive: true });
  npmInstall(place);
  return place;
}

const start = (place: string, variables: Variables = {}) =>
  spawnProgram("npm", ["start", "--silent"], { directory: place, variables });

describe("an installed copy of the example", () => {
  it.each<[name: string, said: readonly RegExp[]]>([
    ["payouts", [/^the shop was killed/m, /^40 of 40 orders are PAID, 40 of them exactly once on the chain$/m]],
    [
      "viem",
      [/^- {2}transport: http/m, /^\+ {2}transport: fencepost/m, /^through Fencepost: 20 of 20 payments arrived$/m],
    ],
    ["mint", [/^(?:0x\w{40} minted [1-9]\d*\n){4}/m, /^asked for once more, there are 100 tickets$/m]],
    ["express", [/^paid again +\{\s+status: 202/m, /^other amount \{\s+status: 409/m, /^looked at.*CONFIRMED/ms]],
    ["nextjs", [/^paid +202$/m, /^other amount 409$/m, /^looked at.*CONFIRMED/ms]],
  ])("%s does what its page says", { timeout: TIMEOUT_MS }, async (name, said) => {
    const child = start(install(name));
    const { code } = await child.exited;
    const output = `${child.stdout()}${child.stderr()}`;
    expect({ code, output }).toEqual({ code: 0, output: expect.any(String) });
    for (const each of said) expect(output).toMatch(each);
  });

  it("three-nodes loses nothing when the owner of the lane is killed", { timeout: TIMEOUT_MS }, async ({
    edr,
    nodes,
    database,
  }) => {
    const three = await Promise.all([1, 2, 3].map(() => nodes.start(edr.url, SHORT_LEASE)));
    const place = install("three-nodes");
    const child = start(place, { NODE_URLS: three.map(({ url }) => url).join(","), SIGNER, RUN: "run" });
    await waitUntil(() => child.stdout().includes("30 sent"), "some are sent");
    const [lease] = (await three[0]?.client.leases())?.filter(({ signer }) => signer === SIGNER) ?? [];
    const owner = three.find(({ nodeId }) => nodeId === lease?.nodeId);
    owner?.signal("SIGKILL");
    await owner?.exited;
    expect({ ...(await child.exited), said: child.stderr() }).toMatchObject({ code: 0, said: "" });
    expect(child.stdout()).toMatch(/^100 of 100 are CONFIRMED, with 100 nonces$/m);
    await untilSettled(database, 100);
    await audit({ database, rpcUrl: edr.url });
  });
});

describe("the bytecode of the mint example", () => {
  it("equals the output of the compiler version that its source names", { timeout: TIMEOUT_MS }, async () => {
    const source = readFileSync(join(root, "examples/mint/Ticket.sol"), "utf8");
    const version = /pragma solidity ([\d.]+);/.exec(source)?.[1];
    const place = join(directory.path, "solc");
    mkdirSync(place);
    writeFileSync(join(place, "package.json"), "{}");
    npmInstall(place, [`solc@${version}`]);
    const solc = createRequire(join(place, "package.json"))("solc") as { compile(input: string): string };
    const settings = {
      optimizer: { enabled: true, runs: 200 },
      metadata: { bytecodeHash: "none", appendCBOR: false },
      outputSelection: { "*": { "*": ["evm.bytecode.object"] } },
    };
    const input = { language: "Solidity", sources: { "Ticket.sol": { content: source } }, settings };
    const { contracts } = JSON.parse(solc.compile(JSON.stringify(input)));
    const checkedIn = readFileSync(join(root, "examples/mint/ticket.ts"), "utf8").match(/(?<=")[0-9a-f]{20,}(?=")/g);
    expect(checkedIn?.join("")).toBe(contracts["Ticket.sol"].Ticket.evm.bytecode.object);
  });
});
