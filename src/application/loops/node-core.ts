/**
 * The parts of a node: creates the application's objects from its ports and connects them. Does not depend on any
 * adapter.
 */
import type { PolicyInForce } from "../../domain/policy/in-force.ts";
import type { Policies } from "../../domain/policy/policy.ts";
import type { AlertCode } from "../../domain/troubles/table.ts";
import type { Chain } from "../../ports/chain.ts";
import type { LeftRequestStore } from "../../ports/left-request-store.ts";
import type { PolicyStore } from "../../ports/policy-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { StuckResolutionHook } from "../../ports/stuck-hook.ts";
import type { Tracer } from "../../ports/tracer.ts";
import type { WebhookSender } from "../../ports/webhook-sender.ts";
import { type ChainContext, contextsOf } from "../chain/chain-context.ts";
import { Cluster } from "../cluster/cluster.ts";
import type { Dequeue } from "../cluster/owner-actions.ts";
import { CREATE_ACTION } from "../cluster/pending-creates.ts";
import { DatabaseClock } from "../database-clock.ts";
import type { Intake } from "../detours/intake.ts";
import { FigureBook, type FigurePorts } from "../lane/figure-book.ts";
import { Lanes } from "../lane/lanes.ts";
import { Lease } from "../lane/lease.ts";
import { limitsOf } from "../lane/limits.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { RecentAlerts } from "../queries/node-reports.ts";
import { Feed } from "../queries/reads.ts";
import type { ChainSettings, NodeSettings } from "../settings.ts";
import { RequestIds } from "../stages/1-create/answer-existing.ts";
import { dequeuedCreates } from "../stages/1-create/asked-create.ts";
import { type CreatePorts, Creates } from "../stages/1-create/create.ts";
import { PoolChoice } from "../stages/1-create/pools.ts";
import { StandingAlerts } from "../standing-alerts.ts";
import { Committer } from "../writer/committer.ts";
import type { Retention } from "./housekeeping.ts";
import { SettlingIn } from "./reception.ts";
import { NodeWatch } from "./stuck-watch.ts";

/** Callbacks into the node's own loops. */
interface CoreEvents {
  /** Called when lanes may be free: claims them. Resolves when the claim was tried. */
  onFree(): Promise<void>;
  /** Called if the intake table may have rows. */
  onIntake(): void;
  onResumed(lane: OwnedLane, context: ChainContext): void;
  /**
   * True if requests of callers are waiting to be read. Then the creates collected so far are sent to the database
   * sooner.
   */
  callersWait(): boolean;
}

export type NodeCore = ReturnType<typeof coreOf>;

export function coreOf(given: NodePorts, settings: NodeSettings, events: CoreEvents) {
  const databaseClock = new DatabaseClock(given.clock);
  const book = bookOf({ clock: databaseClock, store: given.store }, () => ({ lanes, chains }));
  const nodeWatch = new NodeWatch({ ...given, telemetry: book.watching(given.telemetry) });
  const ports = { ...given, telemetry: nodeWatch.telemetry, clock: databaseClock };
  const { store, clock, wakeUps } = ports;
  followPolicies(ports);
  const chains = contextsOf(ports);
  const settlingIn = new SettlingIn(clock, settings.lease);
  const feed = new Feed({ store, clock });
  const writer = new Committer({ ...ports, callersWait: events.callersWait }, settings.writer, {
    onCommitted: (changes) => {
      book.record(changes);
      lanes.fold(changes);
    },
    onFenced: (fence, write) => lanes.lose(fence, write),
    onHistoryChanged: (error) => lease.historyChanged(error),
    onGivenUp: (fence, write) => lanes.giveUp(fence, write),
  });
  const intakeWritten = () => {
    events.onIntake();
    wakeUps.notify("intake");
  };
  const leaseDurationMs = settings.lease.durationMs;
  const cluster = new Cluster({
    ...ports,
    ...settings,
    selfUrl: settings.url,
    lease: () => lease,
    lanes: () => lanes,
    chains,
    leaseDurationMs,
    onChange: () => void events.onFree(),
    onUnreachable: () => lease.suspect(),
    onEnqueued: intakeWritten,
  });
  const lease = new Lease({ ...ports, serving: () => cluster.serving() }, settings, {
    onInstances: (instances) => cluster.learn(instances),
    onLost: () => {
      lanes.dropAll("the instance is over", "lost");
      void events.onFree();
    },
    onSilence: () => cluster.wasSilent(),
    onFreed: () => {
      void events.onFree();
      wakeUps.notify("lanes");
    },
    onAcquainted: () => void events.onFree().then(() => settlingIn.end()),
  });
  const { kills } = cluster;
  const onResumed = (lane: OwnedLane) => events.onResumed(lane, chains.get(lane.lane.chainId) as ChainContext);
  const lanes: Lanes = new Lanes({ ...ports, lease, writer, chains, placement: cluster, kills, onResumed });
  // All ports that work on lanes needs.
  const work = {
    ...ports,
    signer: cluster.keys.signer,
    limits: limitsOf(store),
    chains,
    nodeId: settings.nodeId,
    settings,
    feedGrew: () => {
      feed.grew();
      wakeUps.notify("completions");
    },
    intakeDue: () => events.onIntake(),
    lanesOf: (chainId: number) => lanes.onChain(chainId),
  };
  const state = { settings, chains, feed, settlingIn, nodeWatch, book };
  return { ...state, ports, writer, cluster, lease, lanes, work, intakeWritten };
}

interface Counted {
  readonly lanes: Pick<Lanes, "onChain">;
  readonly chains: ReadonlyMap<number, ChainContext>;
}

/** Statistics of this node's lanes. `parts`: called only once the node has lanes. */
function bookOf(ports: Pick<FigurePorts, "clock" | "store">, parts: () => Counted) {
  return new FigureBook({
    ...ports,
    laneOn: (chainId) => parts().lanes.onChain(chainId)[0] ?? null,
    baseFeeOn: (chainId) => parts().chains.get(chainId)?.follower.baseFee ?? null,
  });
}

/**
 * Reads the policy document whenever it changes: the signing process re-checks transactions against it. Operators are
 * alerted if this node cannot read it, or has a different policy file.
 */

interface FollowPorts extends Pick<Ports, "telemetry" | "signer"> {
  readonly store: Pick<PolicyStore, "knownPolicy">;
  /** Policies from this node's file or configuration. */
  readonly policies?: Policies | null;
}

export function followPolicies({ store, telemetry, signer, policies: own = null }: FollowPorts): void {
  const alerts = new StandingAlerts(telemetry);
  const judge = (code: AlertCode, message: string | null) =>
    alerts.judge({ code, message: message ?? "the node works by the policy document in force" }, message !== null);
  store.knownPolicy.onChange((policy) => {
    signer.adoptPolicies?.(policy.policies?.signers ?? new Map());
    judge("POLICY_UNREADABLE", unreadable(policy));
    judge("POLICY_FILE_DIFFERS", differing(policy, own));
  });
}

function unreadable({ version, policies }: PolicyInForce) {
  const mistakes = policies?.unreadable ?? [];
  if (mistakes.length === 0) return null;
  return `this node gives no nonce: it cannot read version ${version} of the policy document (${mistakes.join("; ")})`;
}

/**
 * Alert text if this node's own policies differ from the document in force. Before the first document there is nothing
 * to compare with: this node's policies become the first document.
 */
function differing({ version, policies }: PolicyInForce, own: Policies | null) {
  if (version === 0 || own === null || policies?.hash === own.hash) return null;
  return `the policies of this node's file or configuration are not used: version ${version} of the document in the database is in force, and says something else`;
}

/** Creates the object for stage 1 (create) from its ports. */
export function openCreates({ work, lanes, cluster, settings }: NodeCore, reception: CreatePorts["reception"]) {
  const { codec, entropy, clock, store, chains } = work;
  const { router, forwardCreates, pendingCreates, kills } = cluster;
  const isServedElsewhere = (chainId: number) => cluster.membership.servesChain(chainId);
  const createPorts = {
    ...work,
    lanes,
    reception,
    router,
    forwardCreates,
    pendingCreates,
    intents: { codec, entropy, clock, chainIds: [...chains.keys()], isServedElsewhere },
    requestIds: new RequestIds(store, clock),
    admission: { perLane: settings.queueLimit, perNode: 4 * settings.queueLimit, underWay: 0 },
  };
  const reaches = cluster.reaches.bind(cluster);
  const creates = new Creates(createPorts, new PoolChoice({ ...createPorts, pools: settings.pools, kills, reaches }));
  cluster.actions.register(CREATE_ACTION, dequeuedCreates(creates));
  return { createPorts, creates };
}

export interface NodePorts extends Ports {
  readonly chains: readonly { readonly chain: Chain; readonly settings: ChainSettings }[];
  /**
   * Hook that decides about stuck transactions; if absent, an operator must. Without either, only expired transactions
   * are cancelled and blocked nonces healed (detours/expiry.ts, detours/holes.ts).
   */
  readonly stuckHook?: StuckResolutionHook;
  /** Recent alerts to show; if absent, none are shown. */
  readonly alerts?: Pick<RecentAlerts, "shown">;
  /** Tracer; if absent, no traces are recorded. */
  readonly tracer?: Tracer;
  /** Sends webhooks for outcomes; if absent, this node delivers none. */
  readonly webhooks?: WebhookSender;
  /** Retention settings; if absent, everything is kept. */
  readonly retention?: Retention;
  /**
   * Policies from this node's file or configuration: they become the first document of a database without policies, and
   * are compared with the document in force.
   */
  readonly policies?: Policies | null;
}

interface TakeWaitingParts {
  readonly store: Pick<LeftRequestStore, "whatWaits">;
  readonly lanes: { all(): readonly OwnedLane[] };
  readonly intakes: Pick<Intake, "look" | "noteNews">;
  readonly cluster: { readonly dequeue: Pick<Dequeue, "look"> };
}

/** Processes intents and waiting requests for this node's lanes. An idle node sends the database one query a second. */
export async function takeWaiting({ store, lanes, intakes, cluster }: TakeWaitingParts): Promise<void> {
  const waits = await store.whatWaits();
  if (waits.intents) await intakes.look(() => lanes.all().filter((lane) => !lane.heldByHistory));
  if (!waits.requests) return;
  intakes.noteNews();
  await cluster.dequeue.look(() => lanes.all());
}
