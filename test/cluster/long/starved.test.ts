/** Nodes that get too little CPU time: after a pause all callers send to them at once, or they hang altogether. */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished } from "vitest";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { untilSettled } from "../../support/audit.ts";
import { auditCluster } from "../../support/cluster/auditor.ts";
import { it as cluster, keysOf, SIGNERS } from "../../support/cluster/cluster.ts";
import { createOn } from "../../support/cluster/creates.ts";
import { InsistentCallers, type Served } from "../../support/cluster/insistent-callers.ts";
import { type Share, shareOf, startBusyLoops } from "../../support/cluster/starvation.ts";
import { it as single } from "../../support/integration.ts";
import type { NodeProcess } from "../../support/node-process.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { pricedTransfer, range } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

const RUNS = 10;
const CALLERS = 1_000;
const REPEAT_MS = 100;
const PAUSE_MS = 3_500;
const BAR_MS = 10_000;
const LOOPS_PER_CORE = 4;
const LOOPS = LOOPS_PER_CORE * availableParallelism();

/**
 * Number of processes that are busy besides the busy loops: the node, the callers with the chain, and two database
 * sessions.
 */
const OTHERS = 4;
/** Share of a core that each process gets if no other program uses the machine. */
const FAIR_SHARE = availableParallelism() / (LOOPS + OTHERS);

const LEASE = {
  FENCEPOST_LEASE_DURATION: "2s",
  FENCEPOST_LEASE_RENEW_INTERVAL: "600ms",
  FENCEPOST_CLOCK_SKEW_ALLOWANCE: "200ms",
};

interface Outcome {
  readonly lastMs: number;
  /** The time limit, extended in proportion if programs other than our loops kept the node from running. */
  readonly barMs: number;
  readonly words: string;
}

function judge(served: readonly Served[], wokenMs: number, share: Share): Outcome {
  const lastMs = Math.max(...served.map(({ atMs }) => atMs - wokenMs));
  const got = share.ranMs / share.wantedMs;
  const barMs = BAR_MS * Math.max(1, FAIR_SHARE / got);
  const percent = (part: number) => `${Math.round(100 * part)} %`;
  const refusals = served.reduce((sum, caller) => sum + caller.refusals.length, 0);
  const starved = `the node's threads ran for ${Math.round(share.ranMs)} ms in the ${Math.round(share.wantedMs)} ms that its main one wanted to run`;
  const words = `the last of ${served.length} callers was served ${Math.round(lastMs)} ms after the node woke, after ${refusals} refusals; ${starved}: it got ${percent(got)} of what it wanted, where our loops alone would leave ${percent(FAIR_SHARE)}; bar ${Math.round(barMs)} ms`;
  return { lastMs, barMs, words };
}

/**
 * Stops the node for longer than its lease, while all callers wait and busy loops use all processors. Then continues
 * it.
 */
async function pauseAndAsk(node: NodeProcess, callers: InsistentCallers): Promise<Outcome> {
  const stop = startBusyLoops(LOOPS);
  onTestFinished(stop);
  node.signal("SIGSTOP");
  const sending = callers.send(range(CALLERS).map((n) => pricedTransfer(n, "after")));
  const stoppedMs = systemClock.monotonicMs();
  await waitUntil(() => systemClock.monotonicMs() - stoppedMs > PAUSE_MS, "its lease has long run out");
  const before = shareOf(node.pid);
  const wokenMs = systemClock.monotonicMs();
  node.signal("SIGCONT");
  const served = await sending;
  const after = shareOf(node.pid);
  stop();
  return judge(served, wokenMs, {
    ranMs: after.ranMs - before.ranMs,
    wantedMs: after.wantedMs - before.wantedMs,
  });
}

describe("a node short of CPU that resumes after a pause longer than its lease", () => {
  single.for(range(RUNS))(
    // protects [Short of time] src/adapters/http/admission/admission-queue.ts, src/adapters/postgres/stores/register-instance.ts
    "serves each of 1,000 callers that repeat ten times a second (run %i)",
    async (_, { nodes, simulated, database }) => {
      const node = await nodes.start(simulated.url, LEASE);
      const callers = new InsistentCallers(node.url, REPEAT_MS);
      onTestFinished(() => callers.close());
      await callers.send(range(CALLERS).map((n) => pricedTransfer(n, "before")));
      await untilSettled(database, CALLERS, { giveUpMs: 60_000 });
      const { lastMs, barMs, words } = await pauseAndAsk(node, callers);
      process.stdout.write(`${words}\n`);
      expect(lastMs, words).toBeLessThan(barMs);
      const sql = "SELECT count(*)::int AS created, count(DISTINCT nonce)::int AS nonces FROM fencepost.transaction";
      expect(await database.query(sql)).toEqual([{ created: 2 * CALLERS, nonces: 2 * CALLERS }]);
    },
  );
});

const FEW = SIGNERS.slice(0, 4);
const preload = fileURLToPath(new URL("../../support/cluster/blocked-loop.mjs", import.meta.url));

describe("a node whose event loop is blocked for thirty seconds", () => {
  // protects [Short of time] src/application/lane/lease.ts
  cluster("loses its lanes to another, and joins again when it goes on", async ({ cluster }) => {
    const variables = { ...keysOf(FEW), NODE_OPTIONS: `--import ${preload}`, BLOCK_MS: "30000" };
    const [hung, other] = await Promise.all([cluster.start({ variables }), cluster.start({ variables: keysOf(FEW) })]);
    await cluster.untilSpread([hung, other], FEW.length);
    hung.signal("SIGUSR2");
    await waitUntil(() => hung.stdout().includes("is blocked"), "the main loop is blocked");
    const isTaken = async () => [...(await cluster.owners()).values()].filter((id) => id === other.nodeId).length;
    await waitUntil(async () => (await isTaken()) === FEW.length, "the other has every lane");
    expect(hung.stdout(), "it still hangs").not.toContain("goes on");
    const accepted = await new PersistentCaller(() => other.client).sendBatch(
      range(20).map(createOn(FEW, "meanwhile")),
    );
    await waitUntil(() => hung.stdout().includes("goes on"), "the main loop goes on", { giveUpMs: 60_000 });
    await waitUntil(async () => [...(await cluster.owners()).values()].includes(hung.nodeId), "it has lanes again", {
      giveUpMs: 60_000,
    });
    await auditCluster(cluster, accepted);
  });
});
