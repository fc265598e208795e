/**
 * Webhooks to receivers in Node and Python, while nodes are killed and frozen, receivers restart, a secret is rotated and
 * the feed begins a new epoch. `npm run test:webhooks` delivers 100,000 outcomes, 10,000 of them of transactions.
 */
import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { describe, expect } from "vitest";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { createClient, FencepostApiError, type NewWebhook } from "../../src/client/index.ts";
import { keysOf, SIGNERS } from "../support/cluster/cluster.ts";
import { createOn } from "../support/cluster/creates.ts";
import { it as base, type Database, SHORT_LEASE } from "../support/integration.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { range } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";
import {
  expectFewRepeats,
  expectWhole,
  type Strike,
  wholeFeed,
  withoutRepeats,
} from "../support/webhooks/expect-whole.ts";
import { type Language, ReceiverProcess } from "../support/webhooks/receiver-process.ts";

const isLong = process.env.FENCEPOST_WEBHOOKS_LONG !== undefined;
const SIZE = isLong ? { transactions: 10_000, outcomes: 100_000 } : { transactions: 100, outcomes: 1_200 };
const MINUTES = 60_000;
const PATIENT = { everyMs: isLong ? 200 : 50, giveUpMs: isLong ? 10 * MINUTES : MINUTES };
/** Answers to a change of a webhook that may have been done, or that another change preceded. */
const UNSURE: readonly string[] = ["UNAVAILABLE", "UNREACHABLE", "CONFLICT"];
/** Outcomes that are written before the slowest receiver has the ones before them, and those written at once. */
const [MOST_AHEAD, CHUNK] = isLong ? [4_000, 500] : [500, 100];
const BATCH = 20;
const CALLERS = 4;
const VARIABLES = {
  ...SHORT_LEASE,
  ...keysOf(SIGNERS),
  FENCEPOST_IN_FLIGHT_WINDOW: "512",
  FENCEPOST_CLUSTER_SECRET: "a-cluster-secret-of-this-test",
  FENCEPOST_HOOK_NETWORKS: "127.0.0.1",
};

/** A machine without Python tries the rest of it. */
function languages(): readonly Language[] {
  if (isLong || spawnSync("python3", ["--version"]).status === 0) return ["node", "python"];
  process.stderr.write("no python3: the receiver in Python stays untested\n");
  return ["node"];
}

interface Subscription {
  readonly receiver: ReceiverProcess;
  readonly webhook: NewWebhook;
}

const END_OF_A_TERM = /"event":"(?:instance\.lost|instance\.declaredDead|webhook\.fenced)"/;

class Stage {
  readonly strikes: Strike[] = [];
  readonly subscriptions: Subscription[] = [];
  private readonly database;
  private readonly startNode;
  private nodes: readonly NodeProcess[] = [];
  /** Every node that was ever started. */
  private readonly began: NodeProcess[] = [];
  private readonly caller = new PersistentCaller(() => createClient({ url: this.node.url, repeat: false }));

  constructor(database: Database, startNode: () => Promise<NodeProcess>) {
    this.database = database;
    this.startNode = async () => {
      const node = await startNode();
      this.began.push(node);
      return node;
    };
  }

  get node(): NodeProcess {
    return this.nodes[0] as NodeProcess;
  }

  async startNodes(): Promise<void> {
    this.nodes = await Promise.all([this.startNode(), this.startNode()]);
  }

  /** What happened, and what the nodes wrote. */
  report(): string {
    const strikes = this.strikes.map(({ atMs, name }) => `${new Date(atMs).toISOString()} ${name}`);
    const refused = this.caller.refusals.slice(-5).map((each) => JSON.stringify(each));
    return [...strikes, ...refused, ...this.nodes.map((node) => `${node.nodeId}:\n${node.stderr()}`)].join("\n");
  }

  /** Why deliveries may be repeated: the strikes, and ends of terms in the logs, as of a starved node. */
  causes(): readonly Strike[] {
    const lines = this.began.flatMap((node) => node.stderr().split("\n"));
    const ends = lines
      .filter((line) => END_OF_A_TERM.test(line))
      .map((line) => JSON.parse(line) as { readonly time: string; readonly event: string })
      .map(({ time, event }) => ({ atMs: Date.parse(time), name: event }));
    return [...this.strikes, ...ends].toSorted((a, b) => a.atMs - b.atMs);
  }

  strike(name: string): void {
    this.strikes.push({ atMs: systemClock.now().getTime(), name });
  }

  async subscribe(language: Language, directory: string): Promise<void> {
    const receiver = await ReceiverProcess.at(language, directory);
    const webhook = await this.node.client.addWebhook({ name: language, url: receiver.url, after: 0 });
    this.subscriptions.push({ receiver, webhook });
  }

  /** The node that delivers for a subscription now. */
  deliverer({ webhook }: Subscription): Promise<string> {
    const sql = `SELECT o.node_id FROM fencepost.subscriber AS s JOIN fencepost.node_instance AS o
      ON o.instance_id = s.owner_instance AND NOT o.dead WHERE s.subscriber_id = $1`;
    const find = async () => (await this.database.query<{ node_id: string }>(sql, [webhook.subscriberId]))[0]?.node_id;
    return waitUntil(find, "a node delivers", PATIENT);
  }

  async killDeliverer(subscription: Subscription): Promise<void> {
    const dying = await this.nodeOf(subscription);
    this.strike("kill −9 of a node");
    await this.replace(dying);
  }

  private async replace(dying: NodeProcess) {
    dying.signal("SIGKILL");
    await dying.exited;
    this.nodes = [...this.nodes.filter((node) => node !== dying), await this.startNode()];
  }

  /** Freezes the delivering node until another one delivers, and lets it go on beside that one. */
  async freezeDeliverer(subscription: Subscription): Promise<void> {
    const frozen = await this.nodeOf(subscription);
    this.strike("a frozen node");
    frozen.signal("SIGSTOP");
    await waitUntil(async () => (await this.deliverer(subscription)) !== frozen.nodeId, "another delivers", PATIENT);
    frozen.signal("SIGCONT");
  }

  private async nodeOf(subscription: Subscription) {
    const name = await this.deliverer(subscription);
    const found = this.nodes.find(({ nodeId }) => nodeId === name);
    if (found === undefined) throw new Error(`no node ${name} runs`);
    // Requests go to the others meanwhile.
    this.nodes = [...this.nodes.filter((node) => node !== found), found];
    return found;
  }

  async restartReceiver({ receiver }: Subscription, secret: string): Promise<void> {
    this.strike(`a restart of the receiver in ${receiver.language}`);
    await receiver.kill();
    // Few: each failure in a row doubles the pause before the next try.
    await receiver.start(secret, { refused: 1, cut: isLong ? 2 : 1 });
  }

  /**
   * The receiver learns of the new secret later: until then the old one is valid, too. Only the answer shows the secret.
   * If the answer is lost and the webhook has another generation, nobody knows its secret: so rotate again in any case.
   */
  async rotate(subscription: Subscription): Promise<string> {
    const { subscriberId } = subscription.webhook;
    const ask = () =>
      this.node.client.rotateWebhook(subscriberId).catch((error: unknown) => {
        if (error instanceof FencepostApiError && UNSURE.includes(error.code)) return null;
        throw error;
      });
    const { secret, generation } = await waitUntil(ask, "the secret is rotated", PATIENT);
    await this.restartReceiver(subscription, secret);
    // An earlier request that had no answer did nothing afterwards: it named the generation before.
    expect(await this.generationOf(subscription)).toBe(generation);
    return secret;
  }

  private async generationOf({ webhook }: Subscription) {
    const sql = "SELECT generation FROM fencepost.subscriber WHERE subscriber_id = $1";
    return (await this.database.query<{ generation: number }>(sql, [webhook.subscriberId]))[0]?.generation;
  }

  /**
   * The database has another history now, as after a restore: the next registration sees it. It is that of a node which
   * replaces the delivering one. An operator resumes the lanes.
   */
  async beginEpoch(subscription: Subscription): Promise<void> {
    const dying = await this.nodeOf(subscription);
    this.strike("kill −9 of a node and a new epoch");
    await this.database.query("UPDATE fencepost.database_history SET system_identifier = 'another'");
    await this.replace(dying);
    const lanes = `SELECT 1 FROM fencepost.lane AS l, fencepost.feed AS f
      WHERE l.suspended_by = 'HISTORY' AND l.reconciled_epoch = f.epoch`;
    const count = async () => (await this.database.query(lanes)).length;
    await waitUntil(async () => (await count()) === SIGNERS.length, "every lane was compared with the chain", PATIENT);
    const resumed = SIGNERS.map((signer) => {
      const resume = () => this.node.client.resume(signer, { reason: "nothing was lost" }).catch(() => null);
      return waitUntil(resume, `${signer} is resumed`, PATIENT);
    });
    await Promise.all(resumed);
  }

  /** Numbers of outcomes in the feed, and of those that the slowest receiver has. */
  async counts(): Promise<{ readonly written: number; readonly delivered: number }> {
    const sql = `SELECT count(*)::int AS written,
      count(*) FILTER (WHERE c.seq <= (SELECT min(s.position) FROM fencepost.subscriber AS s))::int AS delivered
      FROM fencepost.completion AS c`;
    const [row] = await this.database.query<{ written: number; delivered: number }>(sql);
    return row ?? { written: 0, delivered: 0 };
  }

  /** Outcomes of transactions: created through whichever node is up. */
  async transact(count: number): Promise<void> {
    const create = createOn(SIGNERS);
    let next = 0;
    const work = async () => {
      for (let from = next; from < count; from = next) {
        next += BATCH;
        await this.caller.sendBatch(range(Math.min(BATCH, count - from)).map((index) => create(from + index)));
      }
    };
    await Promise.all(range(CALLERS).map(work));
  }

  /** Outcomes as the ledger writes them, of transactions that do not exist, in lanes of their own. */
  async write(count: number): Promise<void> {
    await this.database.query(WRITE, [count]);
    await this.database.query("SELECT pg_notify('fencepost', 'completions')");
  }
}

const WRITE = `WITH counter AS (
    UPDATE fencepost.feed AS f SET last_seq = f.last_seq + $1::bigint WHERE f.only_row RETURNING f.epoch, f.last_seq
  )
  INSERT INTO fencepost.completion (seq, epoch, tx_id, chain_id, signer, request_id, nonce, state, sub_state, settled,
    tx_hash, at)
  SELECT counter.last_seq - $1::bigint + n, counter.epoch, gen_random_uuid(), 31337,
    '0x' || lpad(to_hex(n % 40), 40, 'a'), 'written-' || counter.last_seq - $1::bigint + n, n,
    CASE WHEN n % 50 = 0 THEN 'FAILED_FINAL' ELSE 'CONFIRMED' END, CASE WHEN n % 50 = 0 THEN 'REVERTED' END, true,
    '0x' || lpad(to_hex(n), 64, '0'), clock_timestamp()
  FROM counter, generate_series(1, $1::bigint) AS n`;

/** What an attacker posts who has no secret, an old delivery, or another body: the statuses of the answers. */
async function attack({ receiver, webhook }: Subscription, secret: string): Promise<readonly number[]> {
  const now = Math.floor(systemClock.now().getTime() / 1_000);
  const post = async (key: string, at: number, body: string, sent = body) => {
    const id = `${webhook.subscriberId}_forged`;
    const hmac = createHmac("sha256", Buffer.from(key.replace("whsec_", ""), "base64"));
    const signature = `v1,${hmac.update(`${id}.${at}.${body}`).digest("base64")}`;
    const headers = { "webhook-id": id, "webhook-timestamp": `${at}`, "webhook-signature": signature };
    const event = { "fencepost-event": "completion" };
    const request = { method: "POST", headers: { ...headers, ...event }, body: sent };
    return (await fetch(receiver.url, request)).status;
  };
  const other = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
  return [await post(other, now, "{}"), await post(secret, now - 900, "{}"), await post(secret, now, "{}", '{"a":1}')];
}

const it = base.extend<{ readonly stage: Stage; readonly directory: string }>({
  directory: async ({ task: _ }, use) => {
    const { path, remove } = await makeTemporaryDirectory();
    await use(path);
    await remove();
  },
  stage: async ({ database, nodes, simulated, onTestFailed }, use) => {
    const stage = new Stage(database, () => nodes.start(simulated.url, VARIABLES));
    onTestFailed(() => void process.stderr.write(`${stage.report()}\n`));
    await use(stage);
    await Promise.all(stage.subscriptions.map(({ receiver }) => receiver.kill()));
  },
});

/** What happens meanwhile, each thing once its share of the outcomes is delivered, and the next share is on its way. */
class Story {
  private readonly stage;
  private readonly steps;
  private done = 0;

  constructor(stage: Stage, steps: readonly (() => Promise<unknown>)[]) {
    this.stage = stage;
    this.steps = steps;
  }

  async play(): Promise<void> {
    for (const step of this.steps) {
      const due = this.share(this.done + 1);
      await waitUntil(async () => (await this.stage.counts()).delivered >= due, `${due} are delivered`, PATIENT);
      await step();
      this.done++;
    }
  }

  /** Writes outcomes, never far ahead of the slowest receiver, and not the last of them before everything happened. */
  async grow(): Promise<void> {
    const mayWrite = async () => {
      const { written, delivered } = await this.stage.counts();
      return written - delivered < MOST_AHEAD && written < this.share(this.done + 2);
    };
    for (let left = SIZE.outcomes - SIZE.transactions; left > 0; left -= CHUNK) {
      await waitUntil(mayWrite, "the receivers keep up", PATIENT);
      await this.stage.write(Math.min(CHUNK, left));
    }
  }

  private share(number: number) {
    return Math.floor((SIZE.outcomes * number) / (this.steps.length + 2));
  }
}

describe("receivers of webhooks in Node and Python", () => {
  // protects [Webhooks] src/application/loops/deliveries.ts, src/application/loops/subscriber-run.ts
  it("get every outcome in order, whatever happens to nodes, receivers and the feed", {
    timeout: isLong ? 20 * MINUTES : 2 * MINUTES,
  }, async ({ stage, directory }) => {
    await stage.startNodes();
    for (const language of languages()) await stage.subscribe(language, directory);
    const [first, last] = [stage.subscriptions[0] as Subscription, stage.subscriptions.at(-1) as Subscription];
    await Promise.all(stage.subscriptions.map(({ receiver, webhook }) => receiver.start(webhook.secret)));
    const beganMs = systemClock.monotonicMs();
    const transacting = stage.transact(SIZE.transactions);
    let secret = first.webhook.secret;
    const more = [
      () => stage.killDeliverer(last),
      () => stage.restartReceiver(last, last.webhook.secret),
      () => stage.killDeliverer(first),
      () => stage.restartReceiver(first, first.webhook.secret),
      () => stage.freezeDeliverer(first),
      () => stage.freezeDeliverer(last),
      () => stage.killDeliverer(first),
    ];
    const story = new Story(stage, [
      ...(isLong ? more : []),
      async () => {
        secret = await stage.rotate(first);
      },
      async () => {
        // While the lanes wait for an operator, no create is accepted.
        await transacting;
        await stage.beginEpoch(first);
      },
    ]);
    await Promise.all([transacting, story.grow(), story.play()]);
    const isWritten = async () => (await stage.counts()).written >= SIZE.outcomes;
    await waitUntil(isWritten, "every transaction has its outcome", PATIENT);
    const isOver = async () =>
      (await stage.node.client.webhooks()).every((each) => each.behind === 0 && each.epoch === 2);
    await waitUntil(isOver, "everything is delivered", PATIENT);
    const seconds = (systemClock.monotonicMs() - beganMs) / 1_000;

    expect(await attack(first, secret)).toEqual([401, 401, 401]);
    expect(await attack(last, last.webhook.secret)).toEqual([401, 401, 401]);
    const feed = await wholeFeed(stage.node.client);
    for (const { receiver } of stage.subscriptions) {
      const taken = await receiver.taken();
      expectWhole(taken, feed);
      const repeats = expectFewRepeats(taken, stage.causes());
      const epochs = withoutRepeats(taken).filter(({ kind }) => kind === "epoch.changed");
      expect(epochs.map(({ body }) => JSON.parse(body).epoch)).toEqual([2]);
      const said = `${receiver.language}: ${feed.length} outcomes in ${seconds.toFixed(0)} s; repeats after `;
      process.stdout.write(`${said}${repeats.join(", ")}\n`);
    }
    const settled = feed.filter(({ requestId, settled }) => settled && requestId?.startsWith("request-"));
    expect(settled).toHaveLength(SIZE.transactions);
  });
});
