/** Tests of different kinds of chains and endpoints, with the real chain adapter, signer and database. */
import { describe, expect } from "vitest";
import {
  createFencepost,
  type Fencepost,
  type FencepostOptions,
  type RepricingStrategy,
  type RepricingView,
  type TelemetryEvent,
} from "../../src/index.ts";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import type { SimulatedChainOptions } from "../doubles/simulated-chain/options.ts";
import {
  type SimulatedServer,
  type SimulatedServerOptions,
  startSimulatedServer,
} from "../doubles/simulated-chain/server.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { BLOCK_TIME_MS, it as base, type Database, KEYS } from "../support/integration.ts";
import { range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const GWEI = 1_000_000_000n;
const SEND = "eth_sendRawTransaction";

interface Setting {
  readonly chain?: Partial<SimulatedChainOptions>;
  readonly server?: Partial<SimulatedServerOptions>;
  readonly options?: Partial<FencepostOptions["chains"][number]>;
  readonly repricing?: RepricingStrategy;
  /** True if the chain has a second endpoint. */
  readonly spare?: true;
}

interface Scene {
  readonly fencepost: Fencepost;
  readonly server: SimulatedServer;
  readonly spare: SimulatedServer | null;
  readonly events: readonly TelemetryEvent[];
}

const it = base.extend<{ readonly stage: (setting?: Setting) => Promise<Scene> }>({
  stage: async ({ database }, use) => {
    const closing: (() => Promise<unknown>)[] = [];
    await use(async ({ chain, server: options, options: settings, spare: wanted, repricing } = {}) => {
      const simulated = new SimulatedChain(chain);
      simulated.mine(20);
      const server = await startSimulatedServer({ chain: simulated, blockTimeMs: BLOCK_TIME_MS, ...options });
      const spare = wanted === true ? await startSimulatedServer({ chain: simulated }) : null;
      closing.push(
        () => server.close(),
        async () => spare?.close(),
      );
      const events: TelemetryEvent[] = [];
      const rpc = spare === null ? server.url : [server.url, spare.url];
      const fencepost = await createFencepost({
        databaseUrl: database.url,
        chains: [{ rpc, confirmations: 1, pollInterval: "50ms", resubmitInterval: "400ms", ...settings }],
        signers: KEYS,
        ...(repricing === undefined ? {} : { repricing }),
        onEvent: (event) => void events.push(event),
      });
      closing.push(() => fencepost.close());
      return { fencepost, server, spare, events };
    });
    for (const close of closing.reverse()) await close();
  },
});

async function sendAll({ fencepost }: Scene, database: Database, count: number): Promise<void> {
  await Promise.all(range(count).map((index) => fencepost.send(transfer(index))));
  await untilSettled(database, count);
}

function answers({ events }: Scene): readonly string[] {
  return events.flatMap((event) => (event.type === "submit.answered" ? [event.answer] : []));
}

describe("every transaction is confirmed exactly once with", () => {
  it("an endpoint without eth_getBlockReceipts and without block tags", async ({ stage, database }) => {
    const scene = await stage({ chain: { tagDepths: null }, server: { blockReceipts: false } });
    await sendAll(scene, database, 5);
    await audit({ database, rpcUrl: scene.server.url });
    expect(scene.server.calls("eth_getBlockReceipts")).toBeLessThan(3);
    expect(scene.server.calls("eth_getTransactionReceipt")).toBeGreaterThan(0);
  });

  it("a chain without base fees", async ({ stage, database }) => {
    const scene = await stage({ chain: { baseFee: null } });
    await sendAll(scene, database, 3);
    await audit({ database, rpcUrl: scene.server.url });
    const types = await database.query<{ fee_type: string }>("SELECT DISTINCT fee_type FROM fencepost.attempt");
    expect(types).toEqual([{ fee_type: "legacy" }]);
  });

  it("an endpoint that accepts no future nonces", async ({ stage, database }) => {
    const scene = await stage({ chain: { pool: { futureNonces: "refuseUnmined" } } });
    await sendAll(scene, database, 6);
    await audit({ database, rpcUrl: scene.server.url });
    expect(answers(scene)).toContain("nonceTooHigh");
  });

  it("two servers at different block heights behind one URL", async ({ stage, database }) => {
    const scene = await stage();
    scene.server.faults.alternate(3);
    await sendAll(scene, database, 6);
    scene.server.faults.alternate(0);
    await audit({ database, rpcUrl: scene.server.url });
  });

  it("a gateway that wraps every error and loses responses", async ({ stage, database }) => {
    const scene = await stage({ options: { reprice: "off" } });
    const { chain } = scene.server;
    // When the first send arrives, the base fee rises above the offered price. So nothing is mined before the node has
    // sent it again.
    const unsubscribe = chain.subscribe(({ type }) => type === "arrival" && chain.setBaseFee(100n * GWEI));
    scene.server.faults.inject({ kind: "loseReply" }, { method: SEND, times: 3 });
    scene.server.faults.inject({ kind: "wrapErrors" }, { method: SEND });
    const created = await Promise.all(range(5).map((index) => scene.fencepost.send(transfer(index))));
    await waitUntil(() => answers(scene).includes("alreadyKnown"), "the same bytes are known");
    unsubscribe();
    chain.setBaseFee(GWEI);
    await untilSettled(database, created.length);
    await audit({ database, rpcUrl: scene.server.url });
    const refused = scene.events.filter((event) => event.type === "submit.answered" && event.detail !== null);
    expect(refused).not.toContainEqual(
      expect.objectContaining({ answer: "unknown", detail: "Internal JSON-RPC error." }),
    );
  });

  it("an endpoint that answers with a contract's revert message", async ({ stage, database }) => {
    const scene = await stage();
    const words = { kind: "error", code: 3, message: "execution reverted: nonce too low" } as const;
    scene.server.faults.inject(words, { method: SEND, times: 4 });
    await sendAll(scene, database, 3);
    await audit({ database, rpcUrl: scene.server.url });
    const answered = scene.events.filter((event) => event.type === "submit.answered");
    const contracts = answered.filter(({ detail }) => detail?.includes(words.message));
    expect(contracts.map(({ answer }) => answer)).toEqual(["unknown", "unknown", "unknown", "unknown"]);
  });

  it("one endpoint that limits the rate and another that serves", async ({ stage, database }) => {
    const scene = await stage({ spare: true });
    const before = scene.server.requests();
    scene.server.faults.inject({ kind: "httpError", status: 429, retryAfterSeconds: 60 });
    await sendAll(scene, database, 5);
    expect(scene.server.requests() - before).toBeLessThan(4);
    expect(scene.spare?.calls(SEND)).toBeGreaterThan(0);
    await audit({ database, rpcUrl: scene.spare?.url as string });
  });

  it("a single endpoint that limits the rate with Retry-After", async ({ stage, database }) => {
    const scene = await stage();
    scene.server.faults.inject({ kind: "httpError", status: 429, retryAfterSeconds: 1 }, { times: 1 });
    // When the first request is refused, other requests may already be in flight. So measure the pause from the last of
    // them.
    let [asked, lastMs] = [scene.server.requests(), performance.now()];
    await waitUntil(() => {
      if (scene.server.requests() > asked) [asked, lastMs] = [scene.server.requests(), performance.now()];
      return performance.now() - lastMs > 800;
    }, "it is left alone");
    await waitUntil(() => scene.server.requests() > asked, "it is asked again");
    await sendAll(scene, database, 3);
    await audit({ database, rpcUrl: scene.server.url });
  });
});

describe("a gas price above the offered fee", () => {
  const priced = (index: number, fees: Record<string, bigint>) => {
    const { payload, ...rest } = transfer(index);
    return { ...rest, payload: { ...payload, gas: 21_000, ...fees } };
  };
  const DYNAMIC = { maxFeePerGas: 4n * GWEI, maxPriorityFeePerGas: GWEI };
  const LEGACY = { gasPrice: 4n * GWEI };

  it.for([
    ["eip1559", DYNAMIC],
    ["legacy", LEGACY],
  ] as const)("leads to a reprice (%s) that is mined once", async ([type, fees], { stage, database }) => {
    const scene = await stage();
    scene.server.chain.setBaseFee(6n * GWEI);
    await Promise.all(range(3).map((index) => scene.fencepost.send(priced(index, fees))));
    await untilSettled(database, 3);
    const { mined } = await audit({
      database,
      rpcUrl: scene.server.url,
      witnessed: scene.server.chain.witness.map(({ hash }) => hash),
    });
    expect(mined.map(({ value }) => value).toSorted()).toEqual([1n, 2n, 3n]);
    const kinds = await database.query("SELECT DISTINCT kind, fee_type FROM fencepost.attempt ORDER BY kind");
    expect(kinds).toEqual([
      { kind: "initial", fee_type: type },
      { kind: "reprice", fee_type: type },
    ]);
  });

  it("makes the transaction STUCK if the price also exceeds the ceiling", async ({ stage, database }) => {
    const scene = await stage({ options: { maxFeeGwei: 5, stuckAfter: "1500ms" as `${number}ms` } });
    // The base fee is above the fee ceiling, but not so far above the offered fee that Fencepost would refuse the
    // request at once.
    scene.server.chain.setBaseFee(7n * GWEI);
    const { txId } = await scene.fencepost.send(priced(0, DYNAMIC));
    await waitUntil(async () => (await scene.fencepost.get(txId)).state === "STUCK", "it is stuck");
    const stuck = await scene.fencepost.get(txId, { include: ["history"] });
    expect(stuck.history?.find(({ event }) => event === "stick")?.reason).toContain("the ceiling of 5000000000 wei");
    expect(Date.parse(stuck.nextResubmitAt ?? "")).toBe(Date.parse(stuck.lastSubmittedAt ?? "") + 4_000);
    scene.server.chain.setBaseFee(GWEI);
    await scene.fencepost.waitFor(txId, { timeoutMs: 30_000 });
    const feed = await database.query("SELECT state, settled FROM fencepost.completion ORDER BY seq");
    expect(feed).toEqual([
      { state: "STUCK", settled: false },
      { state: "CONFIRMED", settled: true },
    ]);
  });

  it("leads to a reprice within the ceiling by a custom strategy", async ({ stage, database }) => {
    const seen: RepricingView[] = [];
    const greedy: RepricingStrategy = {
      name: "greedy",
      propose: (view) => {
        seen.push(view);
        return { type: "eip1559", maxFeePerGas: 1_000n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
      },
    };
    const scene = await stage({ repricing: greedy, options: { maxFeeGwei: 15 } });
    scene.server.chain.setBaseFee(6n * GWEI);
    const { txId } = await scene.fencepost.send(priced(0, DYNAMIC));
    const { attempts } = await scene.fencepost.waitFor(txId, { timeoutMs: 30_000 });
    expect(seen[0]).toMatchObject({ refused: false, attempts: 1, standing: { maxFeePerGas: 4n * GWEI } });
    expect(attempts.at(-1)).toMatchObject({
      type: "eip1559",
      maxFeePerGas: String(15n * GWEI),
      maxPriorityFeePerGas: String(2n * GWEI),
    });
    await audit({ database, rpcUrl: scene.server.url });
  });
});
