import { CREATE_ACTION } from "../cluster/pending-creates.ts";
import { type CreatePorts, Creates } from "../stages/1-create/create.ts";
import { dequeuedCreates } from "../stages/1-create/dequeued-creates.ts";
import { PoolChoice } from "../stages/1-create/pools.ts";
import { RequestIds } from "../stages/1-create/request-ids.ts";
import type { NodeCore } from "./node-core.ts";

/** Stage 1 on its ports. */
export function openCreates({ work, lanes, cluster, settings }: NodeCore, reception: CreatePorts["reception"]) {
  const { codec, entropy, clock, store, chains } = work;
  const { router, forwardCreates, pendingCreates, kills } = cluster;
  const isServedElsewhere = (chainId: number) => cluster.membership.servesChain(chainId);
  const createPorts = {
    ...work,
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
