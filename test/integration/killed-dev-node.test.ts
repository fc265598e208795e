/** On a terminal, `fencepost dev` runs its node as a separate process, which a key press kills. */
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { startNodeProcess } from "../../src/main/dev/node-process.ts";
import { audit } from "../support/audit.ts";
import { it, QUICK } from "../support/integration.ts";
import { range, transfer } from "../support/transfers.ts";

const launcher = fileURLToPath(new URL("../../bin/fencepost.js", import.meta.url));

it("after a node of fencepost dev is killed, another node at the same address finishes its transactions", async ({
  database,
  edr,
}) => {
  const lost: string[] = [];
  const { PATH } = process.env;
  const variables = { PATH, ...QUICK, FENCEPOST_DATABASE_URL: database.url, FENCEPOST_RPC_URL: edr.url };
  const options = {
    argv: [launcher, "dev"],
    variables,
    drainTimeoutMs: 1_000,
    onLost: (how: string) => lost.push(how),
  };
  const first = await startNodeProcess(options, 0);
  onTestFinished(async () => void (await first.kill()));
  expect(first).toMatchObject({ chainId: edr.chainId, signers: { length: 2 } });
  const client = createClient({ url: first.url });
  const sent = await Promise.all(range(20).map((index) => client.send(transfer(index, "before"))));
  await first.kill();
  await expect(fetch(`${first.url}/healthz`)).rejects.toThrow();
  const second = await startNodeProcess(options, Number(new URL(first.url).port));
  onTestFinished(async () => void (await second.kill()));
  expect(second.url).toBe(first.url);
  expect(second.pid).not.toBe(first.pid);
  const outcomes = await Promise.all(sent.map((each) => each.final({ timeoutMs: 90_000 })));
  expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["CONFIRMED"]));
  expect((await client.send(transfer(20, "after"))).nonce).toBe(20);
  await client.waitFor((await client.send(transfer(20, "after"))).txId, { timeoutMs: 30_000 });
  await audit({ database, rpcUrl: edr.url });
  await second.stop();
  expect(lost, "a key that kills it is no accident").toEqual([]);
});
