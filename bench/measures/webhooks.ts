import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { createClient, type FencepostClient } from "../../src/client/index.ts";
import { query } from "../environment/databases.ts";
import { type Forked, forkServer } from "../environment/forked.ts";
import { type Spent, spentPerTransaction } from "../environment/processor-time.ts";
import type { Setup, Workbench } from "../environment/workbench.ts";
import { Connection } from "../load/connection.ts";
import { latenciesAt } from "../load/drive.ts";
import type { Pace } from "../options.ts";
import type { ReceiverReport } from "../processes/receiver-messages.ts";
import type { Figure } from "../report.ts";
import { interval, median, percentile } from "../statistics.ts";
import { createInTurn, untilHeld } from "./lanes.ts";

const LANES = 100;
const PER_SECOND = 200;
const CONNECTIONS = 64;
const WARM_UPS = 3;
/** Numbers of dead receivers that are compared; the first is what the others are compared with. */
const DEAD = [0, 1, 100] as const;
/** The tries of a dead receiver become rare: a turn has its first ones, which come closest together. */
const SHORTEST_TURN_MS = 15_000;
const SETTLE_MS = 3_000;
const TURNS_PER_ROUND = 3;
const STORED = 30_000;
const LOOK_AGAIN_MS = 50;
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
  const setup = await bench.open({ signers: LANES, environment: SETTINGS });
  const receivers = await startReceivers();
  const client = createClient({ url: setup.node.url });
  try {
    await untilHeld(setup, LANES);
    return [
      ...(await measureRate(setup, receivers, client)),
      ...(await measureDead({ setup, receivers, client }, pace)),
    ];
  } finally {
    await receivers.stop();
    await setup.close();
  }
}

/** Outcomes that are in the feed already, on a hundred lanes, to one receiver. */
async function measureRate(setup: Setup, receivers: Receivers, client: FencepostClient): Promise<readonly Figure[]> {
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
      spent.push(spentPerTransaction(before, await setup.processor(), STORED));
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
  const dead: string[] = [];
  while (dead.length < Math.max(...DEAD)) {
    const [name, url = ""] = [`dead-${dead.length}`, places[dead.length % places.length]];
    const { subscriberId } = await client.addWebhook({ name, url });
    await client.pauseWebhook(subscriberId, { reason: "until its turn" });
    dead.push(subscriberId);
  }
  await client.addWebhook({ name: "fast", url: receivers.urls.fast });
  const perSecond = pace.perSecond ?? PER_SECOND;
  await latenciesAt(load, perSecond, { warmUpMs: 0, turnMs: WARM_UPS * pace.warmUpMs });
  const turnMs = Math.max(SHORTEST_TURN_MS, pace.sustainMs);
  const turn = async (count: number): Promise<Turn> => {
    const chosen = dead.slice(0, count);
    for (const id of chosen) await client.resumeWebhook(id, { reason: "its turn" });
    await pause(SETTLE_MS);
    await receivers.report();
    const before = await setup.processor();
    const latencies = await latenciesAt(load, perSecond, { warmUpMs: 0, turnMs });
    await pause(SETTLE_MS);
    const spent = spentPerTransaction(before, await setup.processor(), latencies.length);
    const { delaysMs } = await receivers.report();
    for (const id of chosen) await client.pauseWebhook(id, { reason: "its turn is over" });
    return { ...spent, delayMs: percentile(delaysMs, 99), answerMs: percentile(latencies, 99) };
  };
  const rounds: (readonly Turn[])[] = [];
  for (let round = 0; round < TURNS_PER_ROUND * pace.rounds; round++) {
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

/** Ratios within a round, with their interval: what the machine does meanwhile is in both. */
function deadFigures(rounds: readonly (readonly Turn[])[], count: number, index: number): readonly Figure[] {
  const compared = (measure: string, unit: Figure["unit"], of: (turn: Turn) => number): Figure => {
    const pairs = rounds.map((turns) => [of(turns[0] as Turn), of(turns[index] as Turn)] as const);
    const ratios = pairs.map(([without, value]) => value / without);
    const { from, to } = interval(ratios);
    const name = `none (95 %: ${(100 * from).toFixed(1)} to ${(100 * to).toFixed(1)} %)`;
    const reference = { name, value: median(pairs.map(([without]) => without)), ratio: median(ratios) };
    return { measure, unit, value: median(pairs.map(([, value]) => value)), reference };
  };
  const cost = (turn: Turn) => 1_000 * (turn.nodeMs + turn.databaseMs);
  return [
    { ...compared(`creates beside ${count} dead receivers`, "µs per tx", cost), bar: { atMost: 1.02 } },
    compared("  processor time of the node", "µs per tx", ({ nodeMs }) => 1_000 * nodeMs),
    compared("  answered, p99", "ms", ({ answerMs }) => answerMs),
    compared("  delay of another receiver, p99", "ms", ({ delayMs }) => delayMs),
  ];
}
