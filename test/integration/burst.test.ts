import { describe, expect } from "vitest";
import type { CreatedTransaction, FencepostClient } from "../../src/client/index.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { type Database, it, SHORT_LEASE, SIGNER } from "../support/integration.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { pricedTransfer, range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const COUNT = 1_000;
const SINGLES = 600;
const BATCH = 100;
const WINDOW = { FENCEPOST_IN_FLIGHT_WINDOW: "256" };
const PATIENCE = { giveUpMs: 90_000 };

/** Half of the requests contain gas and fees; for the others the node reads them from the chain. */
const request = (index: number) => (index % 2 === 0 ? transfer(index) : pricedTransfer(index));

/** Sends all requests at once: some as single requests on separate connections, the rest in batches. */
async function createAll(caller: PersistentCaller): Promise<readonly CreatedTransaction[]> {
  const singles = range(SINGLES).map((index) => caller.send(request(index)));
  const batches = range((COUNT - SINGLES) / BATCH).map((batch) =>
    caller.sendBatch(range(BATCH).map((index) => request(SINGLES + batch * BATCH + index))),
  );
  return [...(await Promise.all(singles)), ...(await Promise.all(batches)).flat()];
}

describe("1,000 concurrent creates on one signer", () => {
  it("get consecutive nonces", async ({ database, edr, nodes }) => {
    const { client } = await nodes.start(edr.url, WINDOW);
    const created = await createAll(new PersistentCaller(() => client));
    const nonces = created.map(({ nonce }) => nonce as number).toSorted((a, b) => a - b);
    expect(nonces).toEqual(range(COUNT));
    await untilSettled(database, COUNT, PATIENCE);
    const { mined, completions } = await audit({ database, rpcUrl: edr.url });
    expect(new Set(mined.map(({ value }) => value)).size).toBe(COUNT);
    expect(completions).toHaveLength(COUNT);
    expect(completions.every(({ state }) => state === "CONFIRMED")).toBe(true);
  });

  it("are each mined once, even if a node is killed", async ({ database, edr, nodes }) => {
    const variables = { ...WINDOW, ...SHORT_LEASE };
    let node: NodeProcess = await nodes.start(edr.url, variables);
    let serving: FencepostClient | null = node.client;
    let answered = 0;
    const caller = new PersistentCaller(() => serving);
    const killAndRestart = async () => {
      node.signal("SIGKILL");
      serving = null;
      expect(await node.exited).toEqual({ code: null, signal: "SIGKILL" });
      node = await nodes.start(edr.url, variables);
      serving = node.client;
    };
    const first = new Promise<void>((resolve) => {
      caller.onAnswer = () => {
        answered++;
        resolve();
      };
    });
    const creating = createAll(caller);
    await first;
    expect(answered, "the first kill comes while most of them are unanswered").toBeLessThan(COUNT / 2);
    await killAndRestart();
    await waitUntil(async () => (await countIn(database, "CONFIRMED")) > 100, "some of them are through");
    expect(await countIn(database, "CONFIRMED"), "the second kill comes in the middle").toBeLessThan(COUNT);
    await killAndRestart();
    const created = await creating;
    expect(new Set(created.map(({ txId }) => txId)).size).toBe(COUNT);
    expect(created.map(({ nonce }) => nonce as number).toSorted((a, b) => a - b)).toEqual(range(COUNT));
    await untilSettled(database, COUNT, PATIENCE);
    const { mined, stored } = await audit({ database, rpcUrl: edr.url });
    expect(mined.map(({ value }) => Number(value)).toSorted((a, b) => a - b)).toEqual(
      range(COUNT).map((index) => index + 1),
    );
    expect(stored.every(({ state, signer }) => state === "CONFIRMED" && signer === SIGNER.toLowerCase())).toBe(true);
  });
});

async function countIn(database: Database, state: string): Promise<number> {
  const sql = "SELECT count(*)::int AS count FROM fencepost.transaction WHERE state = $1";
  return (await database.query<{ count: number }>(sql, [state]))[0]?.count ?? 0;
}
