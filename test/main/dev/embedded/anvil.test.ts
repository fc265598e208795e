import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { type AnvilOptions, startAnvil } from "../../../../src/main/dev/embedded/chain/child.ts";
import { findProcess } from "../../../../src/main/dev/embedded/processes.ts";
import type { DevChain } from "../../../../src/main/dev/embedded/start-chain.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../../support/temporary-directory.ts";

/** A fake anvil binary, since the machine may not have one: it records its arguments and responds like a node. */
const STAND_IN = `#!${process.execPath}
const fs = require("node:fs");
fs.writeFileSync(__dirname + "/called.json", JSON.stringify({ args: process.argv.slice(2), pid: process.pid }));
const port = Number(process.argv[process.argv.indexOf("--port") + 1]);
require("node:http").createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  const { id, method, params } = JSON.parse(body);
  const known = { eth_chainId: "0x7a69", anvil_mine: params };
  const answer = method in known
    ? { result: known[method] }
    : { error: { code: -32601, message: "Method not found" } };
  response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
}).listen(port, "127.0.0.1");
`;

let temporary: TemporaryDirectory;
let chain: DevChain | null;

beforeEach(async () => {
  temporary = await makeTemporaryDirectory();
  chain = null;
});

afterEach(async () => {
  await chain?.stop();
  await temporary.remove();
});

describe("anvil as the chain of fencepost dev", () => {
  test("is started on the loopback address with the accounts of fencepost dev", async () => {
    chain = await start(STAND_IN, { blockTimeMs: 500 });
    expect(await called()).toEqual([
      ...["--host", "127.0.0.1", "--port", String(chain.port), "--chain-id", "31337"],
      ...["--mnemonic", "test test test test test test test test test test test junk"],
      ...["--accounts", "10", "--balance", "10000", "--block-time", "0.5"],
    ]);
    expect(await chain.rpc("eth_chainId")).toBe("0x7a69");
    expect(chain.accounts[0]?.address).toBe("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    await expect(chain.mine(17)).resolves.toBeUndefined();
    await expect(chain.rpc("no_such")).rejects.toMatchObject({ code: -32601, message: "no_such: Method not found" });
  });

  test("mines on every transaction, or only on request", async () => {
    chain = await start(STAND_IN, { automine: true });
    expect((await called()).slice(-2)).toEqual(["--balance", "10000"]);
    await chain.stop();
    chain = await start(STAND_IN, {});
    expect((await called()).at(-1)).toBe("--no-mining");
  });

  test("is no longer running after stop", async () => {
    chain = await start(STAND_IN, {});
    const { pid } = JSON.parse(await readFile(join(temporary.path, "called.json"), "utf8"));
    expect(await findProcess(pid)).not.toBeNull();
    await chain.stop();
    expect(await findProcess(pid)).toBeNull();
  });
});

describe("a failed start of anvil", () => {
  test("is reported in one line if anvil is not installed", async () => {
    await expect(startAnvil({ clock: systemClock, command: "no-such-anvil" })).rejects.toMatchObject({
      code: "NOT_INSTALLED",
      message: "anvil is not on PATH: install Foundry (https://getfoundry.sh), or use the embedded chain",
    });
  });

  test("is reported in one line with anvil's own message if the program exits", async () => {
    await expect(
      start("#!/bin/sh\necho noise >&2\necho 'Error: bad mnemonic' >&2\nexit 1\n", {}),
    ).rejects.toMatchObject({
      code: "START_FAILED",
      message: "anvil did not start: bad mnemonic",
    });
    await expect(start("#!/bin/sh\nexit 7\n", {})).rejects.toThrow("anvil did not start: exit code 7");
  });

  test("is reported in one line if the port is in use", async () => {
    chain = await start(STAND_IN, {});
    await expect(start(STAND_IN, { port: chain.port })).rejects.toMatchObject({ code: "PORT_TAKEN" });
  });
});

async function start(script: string, options: Omit<AnvilOptions, "clock">): Promise<DevChain> {
  const command = join(temporary.path, "anvil");
  await writeFile(command, script);
  await chmod(command, 0o755);
  return startAnvil({ clock: systemClock, command, ...options });
}

async function called(): Promise<string[]> {
  return JSON.parse(await readFile(join(temporary.path, "called.json"), "utf8")).args;
}
