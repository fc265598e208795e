/** What a node is made of: the pieces of the application on its ports, each told of the others. Knows no adapter. */
import { type ChainContext, contextsOf } from "../chain/chain-context.ts";
import { Cluster } from "../cluster/cluster.ts";
import { DatabaseClock } from "../database-clock.ts";
import { Lanes } from "../lane/lanes.ts";
import { Lease } from "../lane/lease.ts";
import { limitsOf } from "../lane/limits.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { Feed } from "../queries/feed.ts";
import type { NodeSettings } from "../settings.ts";
import { Committer } from "../writer/committer.ts";
import { followPolicies } from "./follow-policies.ts";
import type { NodePorts } from "./node-ports.ts";
import { NodeWatch } from "./node-watch.ts";
import { SettlingIn } from "./settling-in.ts";

/** What the pieces ask of the work that a node does by itself. */
interface CoreEvents {
  /** Lanes may be free: claim them. Resolves when that was tried. */
  onFree(): Promise<void>;
  /** Rows may be in the intake table. */
  onIntake(): void;
  onResumed(lane: OwnedLane, context: ChainContext): void;
  /** Callers are at the door: creates leave sooner. */
  callersWait(): boolean;
}

export type NodeCore = ReturnType<typeof coreOf>;

export function coreOf(given: NodePorts, settings: NodeSettings, events: CoreEvents) {
  const nodeWatch = new NodeWatch(given);
  const ports = { ...given, telemetry: nodeWatch.telemetry, clock: new DatabaseClock(given.clock) };
  const { store, clock, wakeUps } = ports;
  followPolicies(ports);
  const chains = contextsOf(ports);
  const settlingIn = new SettlingIn(clock, settings.lease);
  const feed = new Feed({ store, clock });
  const writer = new Committer({ ...ports, callersWait: events.callersWait }, settings.writer, {
    onCommitted: (changes) => lanes.fold(changes),
    onFenced: (fence, write) => lanes.lose(fence, write),
    onHistoryChanged: (error) => lease.historyChanged(error),
    onGivenUp: (fence, write) => lanes.giveUp(fence, write),
  });
  const intakeWritten = () => {
    events.onIntake();
    wakeUps.tell("intake");
  };
  const leaseDurationMs = settings.lease.durationMs;
  const cluster = new Cluster({
    ...ports,
    ...settings,
    selfUrl: settings.url,
    lease: () => lease,
    lanes: () => lanes,
    ...{ chains, leaseDurationMs },
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
      wakeUps.tell("lanes");
    },
    onAcquainted: () => void events.onFree().then(() => settlingIn.end()),
  });
  const { kills } = cluster;
  const onResumed = (lane: OwnedLane) => events.onResumed(lane, chains.get(lane.lane.chainId) as ChainContext);
  const lanes: Lanes = new Lanes({ ...ports, lease, writer, chains, placement: cluster, kills, onResumed });
  // The one list of ports for everything that works on lanes.
  const work = {
    ...ports,
    signer: cluster.keys.signer,
    limits: limitsOf(store),
    chains,
    nodeId: settings.nodeId,
    feedGrew: () => {
      feed.grew();
      wakeUps.tell("completions");
    },
    intakeDue: () => events.onIntake(),
    lanesOf: (chainId: number) => lanes.onChain(chainId),
  };
  const state = { settings, chains, feed, settlingIn, nodeWatch };
  return { ...state, ports, writer, cluster, lease, lanes, work, intakeWritten };
}
