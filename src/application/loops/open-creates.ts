import type { Cluster } from "../cluster/cluster.ts";
import type { Lanes } from "../lane/lanes.ts";
import type { NodeSettings } from "../settings.ts";
import { type CreatePorts, Creates } from "../stages/1-create/create.ts";
import { CREATES_LEFT, LeaveCreates } from "../stages/1-create/leave-creates.ts";
import { PoolCreates, poolPortsOf } from "../stages/1-create/pools.ts";
import { RequestIds } from "../stages/1-create/request-ids.ts";
import { takeCreates } from "../stages/1-create/take-creates.ts";
import type { NodePorts } from "./node-ports.ts";

type Road = "router" | "outbox" | "throughIntake" | "leaveCreates" | "isUnasked";
type Made = "intents" | "requestIds" | "lanes" | "admission" | Road;
type StagePorts = Omit<NodePorts, "chains"> & Omit<CreatePorts, Made>;

interface Parts {
  readonly lanes: Lanes;
  readonly cluster: Cluster;
  readonly settings: NodeSettings;
}

/** The first stage on its ports: creates of lanes, and before them those that name a pool. */
export function openCreates<P extends StagePorts>(ports: P, { lanes, cluster, settings }: Parts) {
  const { codec, entropy, clock, store, chains } = ports;
  const isServedElsewhere = (chainId: number) => cluster.membership.servesChain(chainId);
  const createPorts = {
    ...ports,
    intents: { codec, entropy, clock, chainIds: [...chains.keys()], isServedElsewhere },
    requestIds: new RequestIds(store, clock),
    lanes,
    router: cluster.forwards ? cluster.router : null,
    outbox: cluster.outbox,
    throughIntake: cluster.throughIntake,
    leaveCreates: new LeaveCreates({ throughDatabase: cluster.throughDatabase, perLane: settings.queueLimit }),
    isUnasked: cluster.isUnasked.bind(cluster),
    admission: { perLane: settings.queueLimit, perNode: 4 * settings.queueLimit, underWay: 0 },
  };
  const reaches = cluster.reaches.bind(cluster);
  const poolPorts = poolPortsOf({ ...createPorts, pools: settings.pools, kills: cluster.kills, reaches });
  const creates = new Creates(createPorts);
  cluster.actions.register(CREATES_LEFT, takeCreates(creates));
  return { createPorts, creates: new PoolCreates(poolPorts, creates) };
}
