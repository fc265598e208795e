import { type Static, Type } from "typebox";
import { Address, ChainId, oneOf, Timestamp } from "./scalars.ts";

const identity = {
  nodeId: Type.String({ description: "The node's name; it keeps it over restarts where it was given one." }),
  instanceId: Type.String({ description: "One life of the node: new at each start." }),
};

export const ClusterNode = Type.Object(
  {
    ...identity,
    url: Type.String({ description: "Where other nodes reach it; empty for one that is embedded and serves no HTTP." }),
    version: Type.String(),
    mode: oneOf(["basic", "worker-queue"]),
    startedAt: Timestamp,
    heartbeatAt: Timestamp,
    lanes: Type.Integer({ minimum: 0, description: "How many lanes it owns." }),
  },
  { title: "ClusterNode" },
);
export type ClusterNode = Static<typeof ClusterNode>;

export const ClusterNodes = Type.Object({ items: Type.Array(ClusterNode) }, { title: "ClusterNodes" });
export type ClusterNodes = Static<typeof ClusterNodes>;

export const LaneLease = Type.Object(
  {
    chainId: ChainId,
    signer: Address,
    ...identity,
    fencingToken: Type.Integer({ minimum: 1, description: "Grows with every owner; the database refuses older ones." }),
    acquiredAt: Timestamp,
    expiresAt: Type.String({
      format: "date-time",
      description: "When the owner's heartbeat runs out unless it is renewed: one for all its lanes.",
    }),
  },
  { title: "LaneLease" },
);
export type LaneLease = Static<typeof LaneLease>;

export const LaneLeases = Type.Object({ items: Type.Array(LaneLease) }, { title: "LaneLeases" });
export type LaneLeases = Static<typeof LaneLeases>;
