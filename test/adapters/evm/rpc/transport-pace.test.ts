import { describe, expect, it } from "vitest";
import { echo, echoes, useTransportBench, values } from "../../../support/transport-bench.ts";
import { waitUntil } from "../../../support/wait-until.ts";

const bench = useTransportBench();
const IN_RESERVE = 8;
/** Settings with which calls are collected into batches even at a low rate. */
const PACED = { requestEveryMs: 25, gatherAbove: 1 };

/** Sends as many requests as may be sent without waiting, one after the other. Later requests have to wait. */
async function spendReserve({ rpc }: Awaited<ReturnType<typeof bench>>): Promise<void> {
  for (let n = 0; n < IN_RESERVE; n++) await rpc.request("echo", [n]);
}

describe("RPC requests that wait briefly to collect several calls", () => {
  // protects [Many lanes] src/adapters/evm/rpc/transport.ts
  it("are sent at once after an idle period", async () => {
    const made = await bench({ ...PACED });
    const { server, rpc, clock } = made;
    await spendReserve(made);
    expect(server.requests.length).toBe(IN_RESERVE);
    const calls = [];
    for (let ms = 0; ms < 24; ms++) {
      calls.push(rpc.request("echo", [ms]));
      await clock.advance(1);
    }
    expect(server.requests.length).toBe(IN_RESERVE);
    await clock.advance(1);
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 24 }, (_, ms) => ms));
    expect(server.requests.length).toBe(IN_RESERVE + 1);
    await clock.advance(1_000);
    await spendReserve(made);
    expect(server.requests.length).toBe(2 * IN_RESERVE + 1);
  });

  // protects [Many lanes] src/adapters/evm/rpc/transport.ts
  it("are sent early if the batch is full", async () => {
    const made = await bench({ ...PACED, maxBatchCalls: 10 });
    const { server, rpc } = made;
    await spendReserve(made);
    const waits = rpc.batch(echoes(4));
    const fills = rpc.batch(echoes(6));
    expect(values([...(await waits), ...(await fills)])).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 4, 5]);
    expect(server.requests.length).toBe(IN_RESERVE + 1);
  });

  // protects [Many lanes] src/adapters/evm/rpc/transport.ts
  it("do not delay the submission of transactions", async () => {
    const made = await bench({ ...PACED });
    const { rpc, clock } = made;
    await spendReserve(made);
    const read = rpc.batch(echoes(1));
    expect(values(await rpc.sendInOrder([echo("sent")]))).toEqual(["sent"]);
    await clock.advance(25);
    expect(values(await read)).toEqual([0]);
  });

  it("fail if the transport is closed", async () => {
    const made = await bench({ ...PACED });
    await spendReserve(made);
    const read = made.rpc.batch(echoes(1));
    await waitUntil(async () => made.clock.armedTimers > 0, "the request waits");
    await made.rpc.close();
    expect(values(await read)).toEqual(["closed"]);
    expect(made.clock.armedTimers).toBe(0);
  });

  it("are sent sooner if the rate of calls is low", async () => {
    const { server, rpc, clock } = await bench({ ...PACED, gatherAbove: 10_000 });
    const calls = [];
    for (let ms = 0; ms < 200; ms++) {
      calls.push(rpc.request("echo", [ms]));
      await clock.advance(1);
    }
    await clock.advance(25);
    await Promise.all(calls);
    expect(server.requests.length).toBeGreaterThan(4 * IN_RESERVE);
  });
});
