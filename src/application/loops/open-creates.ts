import type { Cluster } from "../cluster/cluster.ts";
import { CREATE_ACTION } from "../cluster/pending-creates.ts";
import type { Lanes } from "../lane/lanes.ts";
import type { NodeSettings } from "../settings.ts";
import { RequestIds } from "../stages/1-create/answer-existing.ts";
import { dequeuedCreates } from "../stages/1-create/asked-create.ts";
import { type CreatePorts, Creates } from "../stages/1-create/create.ts";
import { PoolChoice } from "../stages/1-create/pools.ts";
import type { NodePorts } from "./node-ports.ts";

type Made =
  | "intents"
  | "requestIds"
  | "lanes"
  | "admission"
  | "router"
  | "forwardCreates"
  | "pendingCreates"
  | "reception";
type StagePorts = Omit<NodePorts, "chains"> & Omit<CreatePorts, Made>;

interface Parts extends Pick<CreatePorts, "reception"> {
  readonly lanes: Lanes;
  readonly cluster: Cluster;
  readonly settings: NodeSettings;
}

/** Stage 1 on its ports. */
export function openCreates<P extends StagePorts>(ports: P, { lanes, cluster, settings, reception }: Parts) {
  const { codec, entropy, clock, store, chains } = ports;
  const { router, forwardCreates, pendingCreates, kills } = cluster;
  const isServedElsewhere = (chainId: number) => cluster.membership.servesChain(chainId);
  const createPorts = {
    ...ports,
    ...{ lanes, reception, router, forwardCreates, pendingCreates },
    intents: { codec, entropy, clock, chainIds: [...chains.keys()], isServedElsewhere },
    requestIds: new RequestIds(store, clock),
    admission: { perLane: settings.queueLimit, perNode: 4 * settings.queueLimit, underWay: 0 },
  };
  const reaches = cluster.reaches.bind(cluster);
  const creates = new Creates(createPorts, new PoolChoice({ ...createPorts, pools: settings.pools, kills, reaches }));
  cluster.actions.register(CREATE_ACTION, dequeuedCreates(creates));
  return { createPorts, creates };
}
