/**
 * One node: the pieces of the application put together. Knows no adapter; main gives it ports.
 *
 * start: register an instance → follow the chains → claim lanes and resume them. close: stop taking work, flush what is
 * in hand, release the lanes. abandon: just stop, which is what a crash looks like to the other nodes.
 */
import type { FencepostError } from "../../domain/errors.ts";
import type { Block } from "../../ports/chain.ts";
import { bounded } from "../../ports/clock.ts";
import { HistoryChanged } from "../../ports/lane-store.ts";
import type { WakeUp } from "../../ports/wake-ups.ts";
import type { Created, FencepostApi } from "../api.ts";
import { askedFor, type ChainContext, contextsOf } from "../chain/chain-context.ts";
import { type StableBlocksOptions, stableBlocks } from "../chain/stable-blocks.ts";
import { Cluster } from "../cluster/cluster.ts";
import { DatabaseClock } from "../database-clock.ts";
import { expireUnsent } from "../detours/expiry.ts";
import { Intake } from "../detours/intake.ts";
import { recoverLanes } from "../detours/recover.ts";
import { Activity, type Working } from "../lane/activity.ts";
import { askAgain } from "../lane/ask-again.ts";
import { kickInFlight, kickTenth } from "../lane/kick-due.ts";
import { laneGauges } from "../lane/lane-gauges.ts";
import { Lanes } from "../lane/lanes.ts";
import { Lease, type LeaseEvents } from "../lane/lease.ts";
import { limitsOf } from "../lane/limits.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { createCalls } from "../operations/create-calls.ts";
import { createJsonRpc } from "../operations/json-rpc.ts";
import { createKeyOperations } from "../operations/keys.ts";
import { killOperations } from "../operations/kill.ts";
import { noticeOperations } from "../operations/notices.ts";
import { createOperations, type OperationPorts } from "../operations/operations.ts";
import { createPolicyCalls, type PolicyPorts, seedPolicies } from "../operations/policies.ts";
import { HookRunner } from "../operations/stuck-hook.ts";
import { Feed } from "../queries/feed.ts";
import { NodeReports } from "../queries/node-reports.ts";
import { readiness } from "../queries/readiness.ts";
import { createReads } from "../queries/reads.ts";
import { createSights } from "../queries/sights.ts";
import type { NodeSettings } from "../settings.ts";
import type { Teller, Told } from "../stages/1-create/create.ts";
import type { PoolCreates } from "../stages/1-create/pools.ts";
import { sign } from "../stages/3-sign/sign.ts";
import { broadcast } from "../stages/4-broadcast/broadcast.ts";
import { Committer } from "../writer/committer.ts";
import { backlogOf, ChainLoop } from "./chain-loop.ts";
import { followPolicies } from "./follow-policies.ts";
import { Housekeeping } from "./housekeeping.ts";
import type { NodeGauges, NodePorts } from "./node-ports.ts";
import { NodeWatch } from "./node-watch.ts";
import { openCreates } from "./open-creates.ts";
import { DRAINING, Reception } from "./reception.ts";
import { SettlingIn } from "./settling-in.ts";
import { StuckWatch } from "./stuck-watch.ts";
import { takeWaiting } from "./take-waiting.ts";
import { tendLane } from "./tend.ts";
import { tracedCreates } from "./traced-creates.ts";
import { tellingPauses, Wakefulness } from "./wakefulness.ts";

const BEAT_MS = 100;
const BEATS_PER_BALANCE = 10;
const GRACE_MS = 1_000;
const INTAKE_HINT_MS = 10;

/** Does something again until the database answers, or gives up. */
export type Patiently = <T>(work: () => Promise<T>) => Promise<T>;

export class FencepostNode {
  readonly api: FencepostApi;
  private readonly ports: NodePorts;
  private readonly settings: NodeSettings;
  private readonly chains: ReadonlyMap<number, ChainContext>;
  private readonly loops: readonly ChainLoop[];
  private readonly writer: Committer;
  private readonly lease: Lease;
  private readonly lanes: Lanes;
  private readonly cluster: Cluster;
  private readonly feed: Feed;
  private readonly hook: HookRunner;
  private readonly watch: StuckWatch;
  private readonly reports: NodeReports;
  private readonly nodeWatch: NodeWatch;
  private readonly housekeeping: Housekeeping;
  private readonly creates: PoolCreates;
  private readonly intakes: Intake;
  /** Not over: creates may still be refused because a dead node counts as the owner. */
  readonly settlingIn: SettlingIn;
  private readonly stopping = new AbortController();
  private readonly intake: Activity;
  private readonly claiming: Activity;
  private readonly balancing: Activity;
  private readonly reconciling: Activity;
  private readonly wakefulness: Wakefulness;
  readonly reception: Reception;
  private beating: Promise<void> | null = null;
  private claimAgainAtMs = 0;

  constructor(given: NodePorts, settings: NodeSettings) {
    this.nodeWatch = new NodeWatch(given);
    const ports = { ...given, telemetry: this.nodeWatch.telemetry, clock: new DatabaseClock(given.clock) };
    this.ports = ports;
    this.settings = settings;
    const { store, clock, telemetry } = ports;
    followPolicies(ports);
    this.chains = contextsOf(ports);
    this.settlingIn = new SettlingIn(clock, settings.lease);
    this.feed = new Feed({ store, clock });
    this.wakefulness = new Wakefulness(clock, BEAT_MS);
    this.writer = new Committer({ ...ports, callersWait: () => this.reception.waiting > 0 }, settings.writer, {
      onCommitted: (changes) => this.lanes.fold(changes),
      onFenced: (fence, write) => this.lanes.lose(fence, write),
      onHistoryChanged: (error) => this.lease.historyChanged(error),
      onGivenUp: (fence, write) => this.lanes.giveUp(fence, write),
    });
    this.cluster = new Cluster({
      ...ports,
      ...settings,
      selfUrl: settings.url,
      lease: () => this.lease,
      lanes: () => this.lanes,
      chains: this.chains,
      leaseDurationMs: settings.lease.durationMs,
      onChange: () => this.claiming.kick(),
      onUnreachable: () => this.lease.suspect(),
      onLeft: () => this.tellIntake(),
    });
    this.lease = new Lease({ ...ports, serving: () => this.cluster.serving() }, settings, this.leaseEvents());
    this.lanes = new Lanes({
      ...ports,
      lease: this.lease,
      writer: this.writer,
      chains: this.chains,
      placement: this.cluster,
      kills: this.cluster.kills,
      onResumed: (lane) => this.startLane(lane),
    });
    this.loops = [...this.chains.values()].map((context) => new ChainLoop(this.stagePorts(), context));
    this.hook = new HookRunner({ ...this.stagePorts(), stuckHook: ports.stuckHook ?? null });
    this.watch = new StuckWatch({ clock, telemetry, chains: this.chains, hook: this.hook });
    const instanceId = () => this.lease.instanceId;
    this.reports = new NodeReports({ ...this.stagePorts(), instanceId });
    const parts = { lanes: this.lanes, cluster: this.cluster, settings };
    const { createPorts, creates } = openCreates(this.stagePorts(), parts);
    this.creates = creates;
    // The database is away, and the next beat tries again; or it is another one, and everything begins anew at once.
    const tolerant = (error: unknown): void => {
      if (error instanceof HistoryChanged) this.lease.historyChanged(error);
    };
    const household = { lanes: () => this.lanes.all(), instanceId, signal: this.stopping.signal, onFailed: tolerant };
    this.housekeeping = new Housekeeping(ports, household);
    const onTaken = () => this.cluster.tookUp();
    this.intakes = new Intake(createPorts, { onMore: () => this.intake.kick(), onFailed: tolerant, onTaken });
    this.intake = new Activity(() => this.takeIntake(), tolerant);
    this.claiming = new Activity(() => this.claim(), tolerant);
    this.reconciling = new Activity(() => recoverLanes(createPorts, this.lanes.all()), tolerant);
    this.balancing = new Activity(() => this.balance(), tolerant);
    const { lease, cluster, wakefulness } = this;
    this.reception = new Reception({ lease, cluster, wakefulness, admission: createPorts.admission });
    this.api = tellingPauses(this.makeApi({ ...createPorts, hook: this.hook }), this.wakefulness);
  }

  /** A first transaction in doubt does no harm: an instance whose registration got no answer is replaced by the next. */
  async start(patiently: Patiently = (work) => work()): Promise<void> {
    const patience = { forMs: this.settings.lease.durationMs, signal: this.stopping.signal };
    const first = (work: () => Promise<void>) => patiently(() => askAgain(work, this.ports.clock, patience));
    await first(() => this.lease.start());
    await first(async () => this.cluster.learn(await this.ports.store.instances()));
    await first(() => seedPolicies({ ...this.ports, nodeId: this.settings.nodeId }));
    for (const loop of this.loops) loop.start();
    // What cannot be claimed at this moment is owed, and the beat tries again.
    await this.claiming.now();
    this.ports.wakeUps.hear((wakeUp) => this.wake(wakeUp));
    // A node that was alone until now learns that there is another one to share with.
    this.ports.wakeUps.tell("lanes");
    this.beating = this.beat();
  }

  /** From here on `/readyz` says no and no create is let in; what is under way goes on. */
  drain(): void {
    this.reception.draining = true;
  }

  /**
   * Graceful end. Where other nodes are live, the lanes are theirs at once and requests that still come are forwarded
   * until the drain timeout; alone, creates under way are answered first.
   */
  async close(): Promise<void> {
    this.drain();
    const { clock } = this.ports;
    const deadlineMs = clock.monotonicMs() + this.settings.drainTimeoutMs;
    await bounded(clock, this.cluster.drain(), deadlineMs);
    if (this.cluster.peers > 0) await this.leaveToOthers(deadlineMs);
    else while (this.reception.underWay > 0 && clock.monotonicMs() < deadlineMs) await clock.sleep(10);
    this.lanes.close(DRAINING);
    this.lanes.dropAll(DRAINING, "putOff");
    // Each step has its share of the time. Open writes, then the lease: the lanes are free before the chain is waited for.
    await bounded(clock, this.writer.idle(), deadlineMs + GRACE_MS);
    await bounded(clock, this.lease.stop(), deadlineMs + 2 * GRACE_MS);
    this.ports.wakeUps.tell("lanes");
    await bounded(clock, this.stopWork(), deadlineMs + 3 * GRACE_MS);
  }

  /** Stops without releasing anything: to the rest of the world this node has crashed. */
  async abandon(): Promise<void> {
    this.drain();
    this.lanes.close("abandoned");
    this.lanes.dropAll("abandoned", "lost");
    await this.lease.abandon();
    await this.stopWork();
  }

  /** A caller's own transaction holds an intent. It will have committed a moment from now, or one of the next looks finds it. */
  intakeWritten(): void {
    this.ports.clock.after(INTAKE_HINT_MS, () => this.tellIntake());
  }

  private tellIntake(): void {
    this.intakes.expectRows();
    this.ports.wakeUps.tell("intake");
  }

  gauges(): NodeGauges {
    return {
      ...laneGauges(this.lanes.all(), this.ports.clock.now()),
      writerQueueDepth: this.writer.depth,
      receiptBacklog: backlogOf(this.loops),
      killsInForce: this.kills.inForce,
    };
  }

  /** Blocks of one chain past a depth, ascending, each height once. */
  blocks(chainId: number, options: StableBlocksOptions): AsyncGenerator<Block, void, undefined> {
    return stableBlocks(this.ports, askedFor(this.chains, chainId), options);
  }

  private stagePorts() {
    return {
      ...this.ports,
      signer: this.cluster.keys.signer,
      limits: limitsOf(this.ports.store),
      chains: this.chains,
      nodeId: this.settings.nodeId,
      feedGrew: () => this.feedGrew(),
      intakeDue: () => this.intakes.expectRows(),
      lanesOf: (chainId: number) => this.lanes.onChain(chainId),
    };
  }

  /** Gives a resumed lane its activities and the look for receipts it owes. */
  private startLane(lane: OwnedLane): void {
    const context = this.chains.get(lane.lane.chainId) as ChainContext;
    const ports = this.stagePorts();
    const failed = (error: unknown): void => lane.term.readAgain(String(error));
    const working = (work: () => Working): Activity => new Activity(() => lane.term.work(work), failed);
    const signing = working(() => sign(ports, context, lane));
    const broadcasting = working(() => broadcast(ports, context, lane));
    const tending = working(() => tendLane(ports, context, lane));
    const expiring = working(() => expireUnsent(ports, lane));
    lane.activities = { signing, broadcasting, tending, expiring };
    if (!lane.ledger.reconciled) this.reconciling.kick();
    this.loops.find((loop) => loop.context === context)?.kick();
    signing.kick();
  }

  /** The beat under everything that waits for time: back-offs, resubmissions, lanes to be had again, the intake table. */
  private async beat(): Promise<void> {
    for (let count = 1; !this.stopping.signal.aborted; count++) {
      this.wakefulness.beat();
      await this.ports.clock.sleep(BEAT_MS, this.stopping.signal).catch(() => undefined);
      if (count % BEATS_PER_BALANCE === 0) {
        this.balancing.kick();
        if (this.lease.mayAct()) this.watch.look(this.lanes.all());
        if (this.lease.mayAct()) this.reports.look();
        this.nodeWatch.look(this.chains, this.lanes, backlogOf(this.loops));
      }
      const nowMs = this.ports.clock.monotonicMs();
      kickTenth(this.lanes.all(), count, nowMs);
      for (const { onChain } of this.chains.values()) kickInFlight(onChain, nowMs);
      if (this.lanes.claimOwed || nowMs >= this.claimAgainAtMs) this.claiming.kick();
      void this.lanes.retryWanted();
      if (this.intakes.isDue(count, this.ports.wakeUps.hears)) this.intake.kick();
    }
  }

  private async takeIntake(): Promise<void> {
    const { lanes, intakes, cluster } = this;
    if (!this.reception.draining && this.lease.mayAct()) await takeWaiting({ ...this.ports, lanes, intakes, cluster });
  }

  private async balance(): Promise<void> {
    this.reconciling.kick();
    if (this.reception.draining || !this.lease.mayAct()) return;
    await this.cluster.announce();
    const held = this.lanes.size;
    await this.cluster.rebalance();
    if (this.lanes.size < held) this.ports.wakeUps.tell("lanes");
    this.claiming.kick();
    this.housekeeping.look();
  }

  private async leaveToOthers(deadlineMs: number): Promise<void> {
    // What others still send here in good faith must not bring a lane back that is on its way to them.
    this.lanes.close(DRAINING);
    const handOvers = this.lanes
      .all()
      .map((lane) => this.lanes.handOver(lane, DRAINING).then(() => this.ports.wakeUps.tell("lanes")));
    await bounded(this.ports.clock, Promise.all(handOvers), deadlineMs);
    await this.ports.clock.sleep(Math.max(0, deadlineMs - this.ports.clock.monotonicMs()));
  }

  /**
   * Everything free, whenever something was freed; and once per lease without a reason, because a claim passes over
   * lanes that another transaction has locked at that moment, and no hint says when they are unlocked.
   */
  private async claim(): Promise<void> {
    if (!this.lease.mayAct()) return;
    this.claimAgainAtMs = this.ports.clock.monotonicMs() + this.settings.lease.durationMs;
    await this.lanes.claimAll();
  }

  /** Another node says that there is something to see. What it does not say, the next look finds. */
  private wake(wakeUp: WakeUp): void {
    if (wakeUp === "completions") this.feed.grew();
    if (wakeUp === "intake") this.intakes.expectRows();
    if (wakeUp === "taken") this.cluster.answersCame();
    if (wakeUp === "lanes") this.lease.look();
    if (wakeUp === "lanes") this.claiming.kick();
  }

  private feedGrew(): void {
    this.feed.grew();
    this.ports.wakeUps.tell("completions");
  }

  private leaseEvents(): LeaseEvents {
    return {
      onInstances: (instances) => this.cluster.learn(instances),
      onLost: () => {
        this.lanes.dropAll("the instance is over", "lost");
        this.claiming.kick();
      },
      onSilence: () => this.cluster.wasSilent(),
      onFreed: () => {
        this.claiming.kick();
        this.ports.wakeUps.tell("lanes");
      },
      onAcquainted: () => void this.claiming.now().then(() => this.settlingIn.end()),
    };
  }

  private async stopWork(): Promise<void> {
    this.stopping.abort();
    this.kills.stop();
    await this.beating;
    this.wakefulness.rest();
    await Promise.all(this.loops.map((loop) => loop.stop()));
    const lanes = this.lanes.all();
    for (const lane of lanes) lane.stop();
    await Promise.all(lanes.map((lane) => lane.settled()));
    const { intake, intakes, claiming, balancing, reconciling, watch, housekeeping, cluster } = this;
    const all = [intake, intakes, cluster.leftRequests, claiming, balancing, reconciling, watch, housekeeping];
    for (const each of all) await each.settled();
  }

  private makeApi(operationPorts: OperationPorts & PolicyPorts): FencepostApi {
    return {
      ...createReads({ ...this.stagePorts(), feed: this.feed, kills: this.kills }),
      ...createSights({ ...this.stagePorts(), kills: this.kills, reports: this.reports }),
      ...killOperations(this.ports.codec, this.kills),
      ...noticeOperations(this.ports),
      ...createOperations(operationPorts, this.cluster.actions),
      ...createPolicyCalls(operationPorts),
      ...createKeyOperations(this.ports),
      ...createJsonRpc({ ...operationPorts, isFree: (signer) => this.lease.mayAct() && !this.kills.holds(signer) }),
      ...createCalls(operationPorts, (told) => this.create(told)),
      readiness: (chainId) => {
        const { draining } = this.reception;
        const node = { ...this.stagePorts(), lease: this.lease, chains: [...this.chains.values()] };
        return readiness({ ...node, draining, settledIn: this.settlingIn.isOver }, chainId);
      },
    };
  }

  get kills() {
    return this.cluster.kills;
  }

  /** What operators ask of a lane, wherever it is owned. */
  get actions() {
    return this.cluster.actions;
  }

  /** One fate for each. Of callers, unless it is said that another node tells of them. */
  async create(told: readonly Told[], by: Teller = "caller"): Promise<readonly (Created | FencepostError)[]> {
    const turnedAway = by === "caller" ? this.reception.turnedAway() : null;
    if (turnedAway !== null) return told.map(() => turnedAway);
    return this.reception.counted(tracedCreates(this.ports.tracer, told, by, this.creates));
  }
}
