/**
 * One node: its parts (node-core.ts), and its background work, each kind on its own schedule.
 *
 * start: register an instance → follow the chains → claim lanes and resume them. close: stop accepting work, flush work
 * in progress, release the lanes. abandon: stop without releasing anything, like a crash as seen by the other nodes.
 */
import type { Address } from "../../domain/lane.ts";
import type { Block } from "../../ports/chain.ts";
import { bounded } from "../../ports/clock.ts";
import { HistoryChanged } from "../../ports/lane-store.ts";
import type { WakeUp } from "../../ports/wake-ups.ts";
import { noWebhooks } from "../../ports/webhook-sender.ts";
import { askedFor, type ChainContext } from "../chain/chain-context.ts";
import { type StableBlocksOptions, stableBlocks } from "../chain/stable-blocks.ts";
import { expireUnsent } from "../detours/expiry.ts";
import { Intake } from "../detours/intake.ts";
import { recoverLanes } from "../detours/reconcile.ts";
import { Activity, type Working } from "../lane/activity.ts";
import { kickInFlight, kickTenth } from "../lane/kick-due.ts";
import { askAgain } from "../lane/lanes.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { callsOf, type FencepostApi } from "../operations/calls.ts";
import { seedPolicies } from "../operations/policies.ts";
import { HookRunner } from "../operations/stuck-hook.ts";
import { NodeReports } from "../queries/node-reports.ts";
import type { NodeSettings } from "../settings.ts";
import type { Creates } from "../stages/1-create/create.ts";
import { sign } from "../stages/3-sign/sign.ts";
import { broadcast } from "../stages/4-broadcast/broadcast.ts";
import { backlogOf, ChainLoop } from "./chain-loop.ts";
import { Deliveries } from "./deliveries.ts";
import { Housekeeping } from "./housekeeping.ts";
import { coreOf, type NodeCore, type NodePorts, openCreates, takeWaiting } from "./node-core.ts";
import { DRAINING, Reception, reportingPauses, Wakefulness } from "./reception.ts";
import { StuckWatch } from "./stuck-watch.ts";
import { tendLane } from "./tend.ts";

const BEAT_MS = 100;
const BEATS_PER_BALANCE = 10;
const GRACE_MS = 1_000;
/** How long a stop waits at most for the last statistics. */
const FIGURES_MS = 500;
const INTAKE_HINT_MS = 10;

/** Repeats work until the database answers, or for a limited time. */
export type Patiently = <T>(work: () => Promise<T>) => Promise<T>;

export class FencepostNode {
  readonly api: FencepostApi;
  readonly reception;
  private readonly core: NodeCore;
  private readonly creates;
  /** One loop for each chain: blocks, receipts, finality, reconciliation. */
  private readonly loops: readonly ChainLoop[];
  /** Claims free lanes. */
  private readonly claiming;
  /** Balances lanes with the other nodes. */
  private readonly balancing;
  /** Compares lanes with the chain after a restore or failover of the database. */
  private readonly reconciling;
  /** Processes intents and requests that other processes have enqueued for this node's lanes. */
  private readonly taking;
  private readonly intakes;
  /** Looks for stuck transactions, and calls the hook. */
  private readonly watch;
  /** Reports state that only this node has in memory. */
  private readonly reports;
  /** Deletes rows that are past their retention. */
  private readonly housekeeping;
  /** Delivers outcomes to subscribers. */
  private readonly deliveries;
  private readonly wakefulness;
  private readonly stopping = new AbortController();
  private beating: Promise<void> | null = null;
  private claimAgainAtMs = 0;

  constructor(given: NodePorts, settings: NodeSettings) {
    const core = coreOf(given, settings, {
      onFree: () => this.claiming.now(),
      onIntake: () => this.intakes.expectRows(),
      callersWait: () => this.reception.waiting > 0,
      onResumed: (lane, context) => {
        this.beginWork(context, lane);
        if (!lane.ledger.reconciled) this.reconciling.kick();
        this.loops.find((loop) => loop.context === context)?.kick();
        lane.signing?.kick();
      },
    });
    this.core = core;
    const { ports, work, chains, lanes, lease, cluster } = core;
    const { clock, telemetry } = ports;
    // Ignores that the database is unavailable, because the next beat tries again. If the database's history changed,
    // the lease starts over at once.
    const tolerant = (error: unknown) => {
      if (error instanceof HistoryChanged) lease.historyChanged(error);
    };
    this.wakefulness = new Wakefulness(clock, BEAT_MS);
    this.loops = [...chains.values()].map((context) => new ChainLoop(work, context));
    const hook = new HookRunner(work);
    this.watch = new StuckWatch({ clock, telemetry, chains, hook });
    const instanceId = () => lease.instanceId;
    this.reports = new NodeReports({ ...work, instanceId, unowned: cluster.unownedWatch });
    const { createPorts, creates } = openCreates(core, {
      turnedAway: () => this.reception.turnedAway(),
      counted: (underWay) => this.reception.counted(underWay),
    });
    this.creates = creates;
    const household = { lanes: () => lanes.all(), instanceId, signal: this.stopping.signal, onFailed: tolerant };
    this.housekeeping = new Housekeeping(ports, household);
    this.deliveries = deliveriesOf(core, tolerant);
    const onTaken = () => cluster.answered();
    this.intakes = new Intake(work, { onMore: () => this.taking.kick(), onFailed: tolerant, onTaken });
    this.taking = new Activity(() => this.takeIntake(), tolerant);
    this.claiming = new Activity(() => this.claim(), tolerant);
    this.reconciling = new Activity(() => recoverLanes(work, lanes.all()), tolerant);
    this.balancing = new Activity(() => this.balance(), tolerant);
    const { reports, wakefulness } = this;
    this.reception = new Reception({ lease, cluster, wakefulness, admission: createPorts.admission });
    const isFree = (signer: Address) => lease.mayAct() && !cluster.kills.holds(signer);
    const { kills, actions } = cluster;
    const webhooking = { webhooks: ports.webhooks ?? noWebhooks, webhooksChanged: () => this.deliveries.lookNow() };
    const answering = { reports, hook, isFree, creates, reception: this.reception, kills, actions, ...webhooking };
    this.api = reportingPauses(callsOf({ ...core, ...createPorts, ...answering }), wakefulness);
  }

  /**
   * Starts the node. If the outcome of a registration is unknown, another instance is registered, and the first does no
   * harm.
   */
  async start(patiently: Patiently = (work) => work()): Promise<void> {
    const { ports, settings, lease, cluster } = this.core;
    const patience = { forMs: settings.lease.durationMs, signal: this.stopping.signal };
    const first = (work: () => Promise<void>) => patiently(() => askAgain(work, ports.clock, patience));
    await first(() => lease.start());
    await first(async () => cluster.learn(await ports.store.instances()));
    await first(() => seedPolicies({ ...ports, nodeId: settings.nodeId }));
    for (const loop of this.loops) loop.start();
    // If claiming the lanes fails here, the regular beat repeats it.
    await this.claiming.now();
    ports.wakeUps.listen((wakeUp) => this.wake(wakeUp));
    // Notify the other nodes: a node that was alone until now can share its lanes with this one.
    ports.wakeUps.notify("lanes");
    this.beating = this.beat();
  }

  /**
   * From here on `/readyz` reports not ready, and creates are refused unless other live nodes can accept them; work
   * under way continues.
   */
  drain(): void {
    this.reception.draining = true;
  }

  /**
   * Graceful end. If other nodes are live, they get the lanes at once, and requests that still arrive here are
   * forwarded until the drain timeout. A single node, and a node without a URL, to which nobody sends requests, answers
   * the creates under way first and then ends.
   */
  async close(): Promise<void> {
    this.drain();
    const { ports, settings, cluster, lanes, writer, lease, book } = this.core;
    const { clock } = ports;
    const deadlineMs = clock.monotonicMs() + settings.drainTimeoutMs;
    await bounded(clock, cluster.drain(), deadlineMs);
    // Write the last figures while this node owns lanes. The lanes wait only a moment for them.
    const counted = bounded(clock, book.write(), clock.monotonicMs() + FIGURES_MS);
    if (cluster.peers > 0 && settings.url !== "") await this.leaveToOthers(deadlineMs);
    else while (this.reception.underWay > 0 && clock.monotonicMs() < deadlineMs) await clock.sleep(10);
    lanes.close(DRAINING);
    lanes.dropAll(DRAINING, "putOff");
    const delivered = this.deliveries.close();
    // Each part of the shutdown has its own time limit. Open writes end first, then the lease, so that the lanes are
    // free before this node waits for its work on the chain.
    await bounded(clock, Promise.all([writer.idle(), counted, delivered]), deadlineMs + GRACE_MS);
    await bounded(clock, lease.stop(), deadlineMs + 2 * GRACE_MS);
    ports.wakeUps.notify("lanes");
    await bounded(clock, this.stopWork(), deadlineMs + 3 * GRACE_MS);
  }

  /** Stops without releasing anything, so that the other nodes see a crash. */
  async abandon(): Promise<void> {
    this.drain();
    this.core.lanes.close("abandoned");
    this.core.lanes.dropAll("abandoned", "lost");
    this.deliveries.dropAll();
    await this.core.lease.abandon();
    await this.stopWork();
  }

  /**
   * Called after a caller wrote an intent in its own transaction, which probably commits within moments. If not, a
   * later read of the intake finds it.
   */
  intakeWritten(): void {
    this.core.ports.clock.after(INTAKE_HINT_MS, this.core.intakeWritten);
  }

  /** Metrics whose values exist only in this process's memory. */
  gauges() {
    const { ports, writer } = this.core;
    const lanes = this.core.lanes.all();
    const now = ports.clock.now();
    const sumOf = (of: (lane: OwnedLane) => number) => lanes.reduce((sum, lane) => sum + of(lane), 0);
    const ages = lanes.map((lane) => now.getTime() - (lane.oldestPendingAt() ?? now).getTime());
    return {
      lanesHeld: lanes.length,
      pendingDepth: sumOf((lane) => lane.pendingDepth()),
      signersAway: sumOf((lane) => (lane.pace.signer.kind === "away" ? 1 : 0)),
      noncesReserved: sumOf((lane) => lane.nonces.reserved),
      oldestPendingAgeSeconds: ages.reduce((most, age) => Math.max(most, age), 0) / 1_000,
      writerQueueDepth: writer.depth,
      receiptBacklog: backlogOf(this.loops),
      killsInForce: this.kills.inForce,
      webhookLag: this.deliveries.lag.outcomes,
      webhookOldestSeconds: this.deliveries.lag.seconds,
    };
  }

  /** Troubles of subscribers, except of those that an operator paused. */
  webhookTroubles() {
    return this.deliveries.troubles;
  }

  /** Stream of one chain's blocks that have enough blocks above them: in ascending order, each height once. */
  blocks(chainId: number, options: StableBlocksOptions): AsyncGenerator<Block, void, undefined> {
    return stableBlocks(this.core.ports, askedFor(this.core.chains, chainId), options);
  }

  get kills() {
    return this.core.cluster.kills;
  }

  /** Operators' actions on lanes, forwarded to the lane's owner if that is another node. */
  get actions() {
    return this.core.cluster.actions;
  }

  /** Start-up phase. Until it is over, creates may be refused because a dead node still counts as the lane's owner. */
  get settlingIn() {
    return this.core.settlingIn;
  }

  /** Makes creates that come from callers or from another node. */
  readonly create: Creates["create"] = (asked, inlet) => this.creates.create(asked, inlet);

  /** Creates the activities of a lane that this node has just loaded; all are idle at first. */
  private beginWork(context: ChainContext, lane: OwnedLane) {
    const { work } = this.core;
    const failed = (error: unknown) => lane.term.readAgain(String(error));
    const working = (step: () => Working) => new Activity(() => lane.term.work(step), failed);
    lane.activities = {
      signing: working(() => sign(work, context, lane)),
      broadcasting: working(() => broadcast(work, context, lane)),
      tending: working(() => tendLane(work, context, lane)),
      expiring: working(() => expireUnsent(work, lane)),
    };
  }

  /** Regular beat for all time-based work: back-offs, resubmissions, lanes to be reacquired, the intake table. */
  private async beat() {
    const { ports, chains, lanes } = this.core;
    for (let count = 1; !this.stopping.signal.aborted; count++) {
      this.wakefulness.beat();
      await ports.clock.sleep(BEAT_MS, this.stopping.signal).catch(() => undefined);
      if (count % BEATS_PER_BALANCE === 0) this.beatSlowly();
      const nowMs = ports.clock.monotonicMs();
      kickTenth(lanes.all(), count, nowMs);
      for (const { onChain } of chains.values()) kickInFlight(onChain, nowMs);
      if (lanes.claimOwed || nowMs >= this.claimAgainAtMs) this.claiming.kick();
      void lanes.retryWanted();
      if (this.intakes.isDue(count, ports.wakeUps.isListening)) this.taking.kick();
    }
  }

  private beatSlowly() {
    const { chains, lanes, lease, nodeWatch, book } = this.core;
    this.balancing.kick();
    if (lease.mayAct()) this.watch.look(lanes.all());
    if (lease.mayAct()) this.reports.look();
    if (lease.mayAct()) this.deliveries.look();
    nodeWatch.look(chains, lanes, backlogOf(this.loops));
    book.look();
  }

  private async takeIntake() {
    const { ports, lanes, cluster, lease } = this.core;
    if (this.reception.draining || !lease.mayAct()) return;
    await takeWaiting({ ...ports, lanes, cluster, intakes: this.intakes });
  }

  private async balance() {
    const { ports, lanes, cluster, lease } = this.core;
    this.reconciling.kick();
    if (this.reception.draining || !lease.mayAct()) return;
    await cluster.announce();
    const held = lanes.size;
    await cluster.rebalance();
    if (lanes.size < held) ports.wakeUps.notify("lanes");
    this.claiming.kick();
    this.housekeeping.look();
  }

  private async leaveToOthers(deadlineMs: number) {
    const { ports, lanes } = this.core;
    const { clock, wakeUps } = ports;
    // Close first: a request that another node still sends here must not reacquire a lane that is being handed over.
    lanes.close(DRAINING);
    const handOvers = lanes.all().map((lane) => lanes.handOver(lane, DRAINING).then(() => wakeUps.notify("lanes")));
    await bounded(clock, Promise.all(handOvers), deadlineMs);
    await clock.sleep(Math.max(0, deadlineMs - clock.monotonicMs()));
  }

  /**
   * Claims all free lanes whenever some were freed, and also once per lease duration: a claim skips lanes that another
   * transaction has locked at that moment, and no hint reports when they are unlocked.
   */
  private async claim() {
    const { ports, settings, lanes, lease } = this.core;
    if (!lease.mayAct()) return;
    this.claimAgainAtMs = ports.clock.monotonicMs() + settings.lease.durationMs;
    await lanes.claimAll();
  }

  /** Handles a hint from another node. A lost hint does no harm: regular polling covers it. */
  private wake(wakeUp: WakeUp) {
    const { feed, cluster, lease } = this.core;
    if (wakeUp === "completions") feed.grew();
    if (wakeUp === "webhooks" || wakeUp === "lanes") this.deliveries.lookNow();
    if (wakeUp === "intake") this.intakes.expectRows();
    if (wakeUp === "taken") cluster.answersCame();
    if (wakeUp === "lanes") lease.look();
    if (wakeUp === "lanes") this.claiming.kick();
  }

  private async stopWork() {
    const { cluster } = this.core;
    this.stopping.abort();
    this.kills.stop();
    await this.beating;
    this.wakefulness.rest();
    await Promise.all(this.loops.map((loop) => loop.stop()));
    const lanes = this.core.lanes.all();
    for (const lane of lanes) lane.stop();
    await Promise.all(lanes.map((lane) => lane.settled()));
    const { taking, intakes, claiming, balancing, reconciling, watch, housekeeping, deliveries } = this;
    const all = [taking, intakes, cluster.dequeue, claiming, balancing, reconciling, watch, housekeeping, deliveries];
    for (const each of all) await each.settled();
  }
}

function deliveriesOf({ ports, cluster, lease, settings, feed }: NodeCore, onFailed: (error: unknown) => void) {
  const deliveries = new Deliveries({
    ...ports,
    sender: ports.webhooks ?? noWebhooks,
    nodeId: settings.nodeId,
    instanceId: () => lease.instanceId,
    mayAct: () => lease.mayAct(),
    members: () => cluster.membership.members,
    onFailed,
  });
  feed.onGrew(() => deliveries.feedGrew());
  return deliveries;
}
