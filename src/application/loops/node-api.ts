/** Everything that callers, operators and the node's own pages may ask of a node. */
import type { Address } from "../../domain/lane.ts";
import type { FencepostApi } from "../operations/calls.ts";
import { createCalls } from "../operations/create-calls.ts";
import { createJsonRpc } from "../operations/json-rpc.ts";
import { createKeyOperations } from "../operations/keys.ts";
import { killOperations } from "../operations/kill.ts";
import { noticeOperations } from "../operations/notices.ts";
import { createOperations, type OperationPorts } from "../operations/operations.ts";
import { createPolicyCalls, type PolicyPorts } from "../operations/policies.ts";
import type { NodeReports } from "../queries/node-reports.ts";
import { readiness } from "../queries/readiness.ts";
import { createReads } from "../queries/reads.ts";
import { createSights } from "../queries/sights.ts";
import type { Creates } from "../stages/1-create/create.ts";
import type { NodeCore } from "./node-core.ts";
import type { Reception } from "./reception.ts";

interface ApiParts {
  readonly operationPorts: OperationPorts & PolicyPorts;
  readonly reports: NodeReports;
  readonly reception: Pick<Reception, "draining">;
  /** No kill concerns this signer, and this node would know of one. */
  readonly isFree: (signer: Address) => boolean;
  readonly creates: Creates;
}

export function nodeApi(core: NodeCore, parts: ApiParts): FencepostApi {
  const { ports, work, lease, feed, settlingIn, cluster } = core;
  const { operationPorts, reports, reception, isFree, creates } = parts;
  const { kills, actions } = cluster;
  const chains = [...core.chains.values()];
  return {
    ...createReads({ ...work, feed, kills }),
    ...createSights({ ...work, kills, reports }),
    ...killOperations(ports.codec, kills),
    ...noticeOperations(ports),
    ...createOperations(operationPorts, actions),
    ...createPolicyCalls(operationPorts),
    ...createKeyOperations(ports),
    ...createJsonRpc({ ...operationPorts, isFree }),
    ...createCalls(creates),
    readiness: (chainId) => {
      const state = { draining: reception.draining, settledIn: settlingIn.isOver };
      return readiness({ ...work, lease, chains, ...state }, chainId);
    },
  };
}
