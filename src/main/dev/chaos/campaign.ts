/**
 * `fencepost chaos`: a cluster of real processes on a real PostgreSQL and a real EVM works under load, while faults that
 * a seed draws strike nodes, wires, endpoints and the chain. At the end everything is healed, and a program checks the
 * contract's invariants against database, chain, endpoints and receivers.
 */
import { join, resolve } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { ChaosReport } from "../../../adapters/cli/diagnose.ts";
import { systemClock as clock } from "../../../adapters/system/clock.ts";
import { createClient } from "../../../client/index.ts";
import type { Hash } from "../../../domain/lane.ts";
import type { ProgressOutput } from "../../process-output.ts";
import { type ClusterParts, type EmbeddedCluster, type NodeChild, withCluster } from "../demo/embedded-cluster.ts";
import { createProgress, type Progress } from "../demo/progress.ts";
import type { DevAccount } from "../embedded/start-chain.ts";
import { Dice } from "./dice.ts";
import { type Disk, openDisk } from "./disk.ts";
import { FAULTS, type Fault, type FaultRecord, type Member, processOf, type Site } from "./faults.ts";
import { judge, type ValueLimit } from "./judgement.ts";
import { KEYS, policiesOf, startLoad } from "./load.ts";
import { report } from "./report.ts";
import { openSurroundings, type Surroundings } from "./surroundings.ts";
import type { Progression } from "./timeline.ts";

export interface CampaignPlan {
  readonly minutes: number;
  readonly nodes: number;
  readonly seed: number;
  /** Transactions a second that callers try to create. */
  readonly rate: number;
  /** Directory for the timeline and the history. */
  readonly output: string;
  /** The program `pgbouncer`. */
  readonly pooler?: string | undefined;
  /** Directory of another release, which the nodes run until a third of the time is over. */
  readonly from?: string | undefined;
  /** Directory on a small file system, for the database; a fault fills it. */
  readonly disk?: string | undefined;
}

/** Longest time after the last fault until everything is final. */
const REST_MS = 180_000;
const MOST_FAULTS_AT_ONCE = 4;
/** A node does not start while its database is away. */
const MOST_STARTS = 60;
const AGAIN_MS = 500;
/** Mean time between faults. */
const BETWEEN_MS = 1_000;

export async function campaign(plan: CampaignPlan, output: ProgressOutput): Promise<ChaosReport> {
  const { nodes, seed, minutes, rate, from } = plan;
  const disk = plan.disk === undefined ? null : await openDisk(plan.disk);
  const progress = createProgress(Math.round(minutes * 60 * rate), output);
  const dice = new Dice(seed);
  const startedMs = clock.monotonicMs();
  const isUpgraded = () => clock.monotonicMs() - startedMs > upgradeMs(plan);
  const older = from === undefined ? undefined : join(resolve(from), "bin/fencepost.js");
  const closing: (() => Promise<unknown>)[] = [];
  // Set before the first node starts.
  let surrounded: Pick<Stage, "around" | "limit">;
  const cluster = {
    ...{ nodes, controlled: true, databaseIn: plan.disk },
    variablesOf: async (parts: ClusterParts) => {
      const { policies, ...limit } = policiesOf(parts.signers, plan);
      const around = await openSurroundings({ clock, dice, nodes, pooler: plan.pooler, policies, closing }, parts);
      surrounded = { around, limit };
      return (name: string) => around.of(name).variables;
    },
    programOf: () => (isUpgraded() ? undefined : older),
  };
  try {
    return await withCluster(cluster, progress, (cluster) =>
      new Campaign(plan, { cluster, ...surrounded, dice, disk, progress }).run(),
    );
  } finally {
    await disk?.empty();
    for (const close of closing.reverse()) await close().catch(() => undefined);
  }
}

const dayOf = (date: Date) => Math.floor(date.getTime() / 86_400_000);
const upgradeMs = ({ minutes }: CampaignPlan) => (minutes * 60_000) / 3;

async function again(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === MOST_STARTS) throw error;
      await clock.sleep(AGAIN_MS);
    }
  }
}

interface Stage {
  readonly cluster: EmbeddedCluster;
  readonly around: Surroundings;
  readonly limit: Omit<ValueLimit, "days">;
  readonly dice: Dice;
  readonly disk: Disk | null;
  readonly progress: Progress;
}

class Campaign {
  private readonly plan: CampaignPlan;
  private readonly stage: Stage;
  private readonly members: readonly Member[];
  private readonly faults: FaultRecord[] = [];
  private readonly course: Progression[] = [];
  private readonly foreign = new Set<Hash>();
  private readonly struck = new Map<string, Promise<void>>();
  private readonly endings = new Set<() => void>();
  private readonly lag = monitorEventLoopDelay({ resolution: 20 });
  private readonly mistakes: unknown[] = [];
  private final = 0;
  private startedMs = 0;
  private startedAt = clock.now();

  constructor(plan: CampaignPlan, stage: Stage) {
    this.plan = plan;
    this.stage = stage;
    const { cluster, around } = stage;
    this.members = cluster.nodes.map(({ name }, index) => ({
      name,
      node: () => cluster.nodes[index] as NodeChild,
      restart: () => again(() => cluster.restart(index)),
      ...around.of(name).parts,
    }));
  }

  async run(): Promise<ChaosReport> {
    const { cluster, around, progress } = this.stage;
    const { seed, minutes, rate } = this.plan;
    await this.subscribe();
    this.startedMs = clock.monotonicMs();
    this.startedAt = clock.now();
    this.lag.enable();
    const follower = this.follow();
    let accepted = 0;
    const { record, stop } = startLoad({
      ...{ clock, dice: new Dice(seed + 1), members: this.members, rate, accounts: cluster.accounts },
      ...{ chainId: cluster.chain.chainId, recipient: cluster.recipient },
      onAccepted: () => void accepted++,
    });
    const shown = () => {
      this.course.push({ atMs: this.nowMs(), accepted, final: this.final });
      progress.update(accepted, this.final);
    };
    const ticking = setInterval(shown, 1_000);
    try {
      progress.phase("faults strike");
      await Promise.all([this.strikeUntil(minutes * 60_000), this.upgrade()]);
      progress.phase("everything is healed");
      await this.heal();
      await stop();
      around.subscriber.heal();
      progress.phase("waiting until everything is final");
      const rest = await this.untilAtRest();
      shown();
      progress.phase("checking the invariants");
      const { arrivals, query } = around;
      const { chain } = cluster;
      const violations = await judge(record, {
        ...{ query, chain, arrivals, foreign: this.foreign, subscriber: around.subscriber },
        limit: { ...this.stage.limit, days: dayOf(clock.now()) - dayOf(this.startedAt) + 1 },
      });
      return await report(this.plan, {
        ...{
          query,
          record,
          violations: [...rest, ...violations],
          arrivals: arrivals.length,
          delivered: around.subscriber.delivered(),
        },
        ...{
          faults: this.faults,
          course: this.course,
          totalMs: this.nowMs(),
          stalledMs: Math.round(this.lag.max / 1e6),
        },
      });
    } finally {
      clearInterval(ticking);
      follower.stop();
      this.lag.disable();
      await this.heal();
    }
  }

  private nowMs(): number {
    return clock.monotonicMs() - this.startedMs;
  }

  private async subscribe(): Promise<void> {
    const { subscriber } = this.stage.around;
    const { url } = (this.members[0] as Member).node();
    const client = createClient({ url, apiKey: KEYS.operator.secret });
    const { secret } = await client.addWebhook({ name: "chaos", url: subscriber.url, after: 0 });
    subscriber.trust(secret);
  }

  /** Counts outcomes in the database for the progress. */
  private follow() {
    const { query } = this.stage.around;
    let isOver = false;
    const look = async () => {
      while (!isOver) {
        await clock.sleep(1_000);
        const [row] = await query<{ n: number }>(
          "SELECT count(*)::int AS n FROM fencepost.transaction WHERE state IN ('CONFIRMED', 'FAILED_FINAL')",
        );
        this.final = row?.n ?? this.final;
      }
    };
    void look().catch(() => undefined);
    return {
      stop: () => {
        isOver = true;
      },
    };
  }

  private async strikeUntil(endMs: number): Promise<void> {
    const { around, cluster, dice, disk } = this.stage;
    const { chain, postgres } = cluster;
    const site: Site = {
      ...{ dice, clock, members: this.members, chain, postgres, query: around.query, disk },
      sendForeign: () => this.sendForeign(dice),
    };
    const possible = FAULTS.filter(({ canStrike }) => canStrike?.(site) !== false);
    while (this.nowMs() < endMs) {
      await clock.sleep(dice.int(1, 2 * BETWEEN_MS));
      const fault = dice.weighted(possible.map((each) => [each.weight, each] as const));
      const target = fault.aim(site);
      const [least, most] = fault.lasts;
      const lastsMs = dice.int(least, most);
      if (this.struck.has(target.part) || this.struck.size >= MOST_FAULTS_AT_ONCE) continue;
      this.begin({ name: fault.name, part: target.part, lastsMs }, () => fault.strike(site, target));
    }
  }

  /** Restarts the nodes that still run the other release, one after the other. */
  private async upgrade(): Promise<void> {
    if (this.plan.from === undefined) return;
    await clock.sleep(upgradeMs(this.plan));
    for (const { name, node, restart } of this.members) {
      const part = processOf(name);
      while (this.struck.has(part)) await clock.sleep(AGAIN_MS);
      await this.begin({ name: "upgrade", part, lastsMs: 0 }, async () => {
        await node().stop();
        return restart;
      });
    }
  }

  private begin(
    { lastsMs, ...what }: Pick<FaultRecord, "name" | "part"> & { lastsMs: number },
    strike: () => ReturnType<Fault["strike"]>,
  ): Promise<void> {
    const record: FaultRecord = { ...what, fromMs: this.nowMs(), untilMs: 0 };
    const at = `${(record.fromMs / 1_000).toFixed(1)} s`;
    this.stage.progress.say(`${at}: ${record.name}, ${record.part}, ${lastsMs} ms`);
    const over = this.suffer(record, lastsMs, strike).finally(() => this.struck.delete(record.part));
    this.struck.set(record.part, over);
    // A mistake of the campaign itself is reported when everything is healed.
    over.catch((error) => this.mistakes.push(error));
    return over;
  }

  /** Lets a fault last its time, or until everything is healed. */
  private async suffer(record: FaultRecord, lastsMs: number, strike: () => ReturnType<Fault["strike"]>) {
    this.faults.push(record);
    const end = await strike();
    await new Promise<void>((resolve) => {
      const over = () => {
        this.endings.delete(over);
        cancel();
        resolve();
      };
      const cancel = clock.after(lastsMs, over);
      this.endings.add(over);
    });
    await end?.();
    record.untilMs = this.nowMs();
  }

  private async heal(): Promise<void> {
    for (const over of this.endings) over();
    await Promise.allSettled(this.struck.values());
    const [mistake] = this.mistakes.splice(0);
    if (mistake !== undefined) throw mistake;
  }

  private async sendForeign(dice: Dice): Promise<void> {
    const { chain, accounts, recipient } = this.stage.cluster;
    const { address } = dice.pick(accounts.slice(0, 2) as DevAccount[]);
    const price = { maxFeePerGas: `0x${(400n * 10n ** 9n).toString(16)}`, maxPriorityFeePerGas: "0x77359400" };
    const call = { from: address, to: recipient, value: "0x1", gas: "0x5208", ...price };
    // The chain may refuse it, as when the pool has a transaction with this nonce.
    const hash = await chain.rpc("eth_sendTransaction", [call]).catch(() => null);
    if (hash !== null) this.foreign.add(hash as Hash);
  }

  /** Waits until every transaction is settled and every outcome delivered. Returns what is not at the end. */
  private async untilAtRest(): Promise<readonly string[]> {
    const { query, subscriber } = this.stage.around;
    const untilMs = this.nowMs() + REST_MS;
    for (;;) {
      const open = await query<{
        tx_id: string;
        signer: string;
        nonce: string | null;
        state: string;
        sub_state: string;
      }>(
        "SELECT tx_id, signer, nonce, state, sub_state FROM fencepost.transaction WHERE state NOT IN ('CONFIRMED', 'FAILED_FINAL')",
      );
      const [feed] = await query<{ n: number }>("SELECT count(*)::int AS n FROM fencepost.completion");
      const missing = (feed?.n ?? 0) - subscriber.delivered();
      if (open.length === 0 && missing <= 0) return [];
      if (this.nowMs() > untilMs)
        return [
          ...open.map(
            (row) => `I4: ${row.tx_id} of ${row.signer}, nonce ${row.nonce}, is still ${row.state}/${row.sub_state}`,
          ),
          ...(missing > 0 ? [`webhook: ${missing} outcomes are not delivered`] : []),
        ];
      await clock.sleep(500);
    }
  }
}
