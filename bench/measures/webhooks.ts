import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { createClient, type FencepostClient } from "../../src/client/index.ts";
import { query } from "../environment/databases.ts";
import { type Forked, forkServer } from "../environment/forked.ts";
import { type Spent, spentPer } from "../environment/processor-time.ts";
import type { Setup, SetupOptions, Workbench } from "../environment/workbench.ts";
import { Connection } from "../load/connection.ts";
import { latenciesAt } from "../load/drive.ts";
import type { Pace } from "../options.ts";
import type { ReceiverReport } from "../processes/receiver-messages.ts";
import type { Figure } from "../report.ts";
import { interval, median, percentile } from "../statistics.ts";
import { createInTurn, untilHeld } from "./lanes.ts";

const LANES = 100;
/** Few: what the creates themselves cost varies by a tenth from turn to turn, and hides what receivers cost. */
const PER_SECOND = 10;
const CONNECTIONS = 64;
const WARM_UPS = 3;
/** Numbers of dead receivers that are compared; the first is what the others are compared with. */
const DEAD = [0, 100] as const;
const SHORTEST_TURN_MS = 60_000;
/** The tries of a dead receiver become rare. In its first seconds it is no dead one, but one that fails. */
const DEAD_AFTER_MS = 60_000;
const SETTLE_MS = 3_000;
const STORED = 30_000;
const LOOK_AGAIN_MS = 50;
/** Blocks and polls as on most chains: twenty blocks a second cost a node so much that what receivers cost is noise. */
const AT_REST = { blockTimeMs: 1_000, environment: { FENCEPOST_POLL_INTERVAL: "1s" } };
const SETTINGS = {
  FENCEPOST_CLUSTER_SECRET: "a-cluster-secret-of-the-bench",
  FENCEPOST_HOOK_NETWORKS: "127.0.0.1",
};

interface Receivers extends Pick<Forked, "stop"> {
  readonly urls: { readonly fast: string; readonly silent: string; readonly slow: string };
  report(): Promise<ReceiverReport>;
}

async function startReceivers(): Promise<Receivers> {
  const { url, child, stop } = await forkServer("receivers");
  return {
    stop,
    urls: JSON.parse(url),
    report: async () => {
      const answered = once(child, "message");
      child.send({});
      return ((await answered) as [ReceiverReport])[0];
    },
  };
}

/** Webhooks: the rate of one receiver that works, and what dead receivers cost creates and other receivers. */
export async function measureWebhooks(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const receivers = await startReceivers();
  const on = async (options: SetupOptions, measure: (bench: Bench) => Promise<readonly Figure[]>) => {
    const environment = { ...SETTINGS, ...options.environment };
    const setup = await bench.open({ ...options, signers: LANES, environment });
    try {
      await untilHeld(setup, LANES);
      return await measure({ setup, receivers, client: createClient({ url: setup.node.url }) });
    } finally {
      await setup.close();
    }
  };
  try {
    return [...(await on({}, measureRate)), ...(await on(AT_REST, (each) => measureDead(each, pace)))];
  } finally {
    await receivers.stop();
  }
}

/** Outcomes that are in the feed already, on a hundred lanes, to one receiver. */
async function measureRate({ setup, receivers, client }: Bench): Promise<readonly Figure[]> {
  const rates: number[] = [];
  const spent: Spent[] = [];
  await query(setup.databaseUrl, WRITE);
  // The first time, V8 compiles what it needs.
  for (const name of ["warm-up", "one", "two", "three"]) {
    const [before, beganMs] = [await setup.processor(), performance.now()];
    const { subscriberId } = await client.addWebhook({ name, url: receivers.urls.fast, after: 0 });
    let outcomes = 0;
    while (outcomes < STORED) {
      outcomes += (await receivers.report()).outcomes;
      await pause(LOOK_AGAIN_MS);
    }
    if (name !== "warm-up") {
      rates.push((1_000 * STORED) / (performance.now() - beganMs));
      spent.push(spentPer(before, await setup.processor(), STORED));
    }
    await client.removeWebhook(subscriberId);
  }
  return [
    { measure: "outcomes to one receiver", value: median(rates), unit: "/s", bar: { atLeast: 1_000 } },
    {
      measure: "  processor time of the node",
      value: 1_000 * median(spent.map(({ nodeMs }) => nodeMs)),
      unit: "µs per tx",
    },
    {
      measure: "  processor time of the database",
      value: 1_000 * median(spent.map(({ databaseMs }) => databaseMs)),
      unit: "µs per tx",
    },
  ];
}

const WRITE = `WITH counter AS (
    UPDATE fencepost.feed AS f SET last_seq = f.last_seq + ${STORED} WHERE f.only_row RETURNING f.epoch, f.last_seq
  )
  INSERT INTO fencepost.completion (seq, epoch, tx_id, chain_id, signer, nonce, state, settled, tx_hash, at)
  SELECT counter.last_seq - ${STORED} + n, counter.epoch, gen_random_uuid(), 31337, '0x' || lpad(to_hex(n % ${LANES}), 40, 'a'), n,
    'CONFIRMED', true, '0x' || lpad(to_hex(n), 64, '0'), now()
  FROM counter, generate_series(1, ${STORED}) AS n`;

/** Processor time is in milliseconds per second. */
interface Turn extends Spent {
  readonly delayMs: number;
  readonly answerMs: number;
}

interface Bench {
  readonly setup: Setup;
  readonly receivers: Receivers;
  readonly client: FencepostClient;
}

async function measureDead({ setup, receivers, client }: Bench, pace: Pace): Promise<readonly Figure[]> {
  const connections = await Connection.openAll(setup.node.url, CONNECTIONS);
  const load = { connections, send: createInTurn(setup) };
  const places = [receivers.urls.silent, receivers.urls.slow, "http://127.0.0.1:1/"];
  await client.addWebhook({ name: "fast", url: receivers.urls.fast });
  const perSecond = pace.perSecond ?? PER_SECOND;
  await latenciesAt(load, perSecond, { warmUpMs: 0, turnMs: WARM_UPS * pace.warmUpMs });
  const turnMs = Math.max(SHORTEST_TURN_MS, pace.sustainMs);
  const turn = async (count: number): Promise<Turn> => {
    const dead: string[] = [];
    while (dead.length < count) {
      const [name, url = ""] = [`dead-${dead.length}`, places[dead.length % places.length]];
      dead.push((await client.addWebhook({ name, url })).subscriberId);
    }
    // With none of them too: after a minute without creates, the first ones cost more.
    await latenciesAt(load, perSecond, { warmUpMs: 0, turnMs: DEAD_AFTER_MS });
    await receivers.report();
    const [before, beganMs] = [await setup.processor(), performance.now()];
    const latencies = await latenciesAt(load, perSecond, { warmUpMs: 0, turnMs });
    await pause(SETTLE_MS);
    const spent = spentPer(before, await setup.processor(), (performance.now() - beganMs) / 1_000);
    const { delaysMs } = await receivers.report();
    for (const id of dead) await client.removeWebhook(id);
    return { ...spent, delayMs: percentile(delaysMs, 99), answerMs: percentile(latencies, 99) };
  };
  const rounds: (readonly Turn[])[] = [];
  for (let round = 0; round < pace.rounds; round++) {
    // Another one begins each round, so that a machine that gets slower or faster favours none.
    const turns: Turn[] = [];
    for (let at = 0; at < DEAD.length; at++) {
      const index = (at + round) % DEAD.length;
      turns[index] = await turn(DEAD[index] ?? 0);
    }
    rounds.push(turns);
  }
  for (const connection of connections) connection.close();
  return DEAD.flatMap((count, index) => (index === 0 ? [] : deadFigures(rounds, count, index)));
}

/**
 * What dead receivers cost is the difference of two turns of a round, at a load that leaves the machine mostly idle: as a
 * share of a core, it is the share of its creates that a busy node would lose.
 */
function deadFigures(rounds: readonly (readonly Turn[])[], count: number, index: number): readonly Figure[] {
  const pairs = rounds.map((turns) => [turns[0] as Turn, turns[index] as Turn] as const);
  const costs = pairs.map(([none, some]) => (some.nodeMs + some.databaseMs - none.nodeMs - none.databaseMs) / 10);
  const { from, to } = interval(costs);
  const compared = (measure: string, of: (turn: Turn) => number): Figure => {
    const without = median(pairs.map(([none]) => of(none)));
    const ratio = median(pairs.map(([none, some]) => of(some) / of(none)));
    const reference = { name: "none", value: without, ratio };
    return { measure, unit: "ms", value: median(pairs.map(([, some]) => of(some))), reference };
  };
  return [
    {
      measure: `${count} dead receivers (95 %: ${from.toFixed(1)} to ${to.toFixed(1)} % of a core)`,
      value: median(costs),
      unit: "% of a core",
      bar: { atMost: 2 },
    },
    compared("  creates answered, p99", ({ answerMs }) => answerMs),
    compared("  delay of another receiver, p99", ({ delayMs }) => delayMs),
  ];
}
