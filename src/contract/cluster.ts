import { type Static, Type } from "typebox";
import { Address, ChainId, Timestamp } from "./scalars.ts";
import { named, nullable, oneOf, query } from "./shapes.ts";

const identity = {
  nodeId: Type.String({ description: "The node's name; it keeps it over restarts where it was given one." }),
  instanceId: Type.String({ description: "One life of the node: new at each start." }),
};

export const ClusterNode = named("ClusterNode", {
  ...identity,
  url: Type.String({ description: "Where other nodes reach it; empty for one that is embedded and serves no HTTP." }),
  version: Type.String(),
  mode: oneOf(["basic", "worker-queue"]),
  startedAt: Timestamp,
  heartbeatAt: Timestamp,
  lanes: Type.Integer({ minimum: 0, description: "How many lanes it owns." }),
});
export type ClusterNode = Static<typeof ClusterNode>;

export const ClusterNodes = named("ClusterNodes", { items: Type.Array(ClusterNode) });
export type ClusterNodes = Static<typeof ClusterNodes>;

export const LaneLease = named("LaneLease", {
  chainId: ChainId,
  signer: Address,
  ...identity,
  fencingToken: Type.Integer({ minimum: 1, description: "Grows with every owner; the database refuses older ones." }),
  acquiredAt: Timestamp,
  expiresAt: Type.String({
    format: "date-time",
    description: "When the owner's heartbeat runs out unless it is renewed: one for all its lanes.",
  }),
});
export type LaneLease = Static<typeof LaneLease>;

export const LaneLeases = named("LaneLeases", { items: Type.Array(LaneLease) });
export type LaneLeases = Static<typeof LaneLeases>;

export const Health = named("Health", { status: oneOf(["ok"]), version: Type.String() });

const ChainReadiness = Type.Object({
  chainId: ChainId,
  reachable: Type.Boolean(),
  head: nullable(Type.Integer({ minimum: 0 })),
  signersAway: Type.Integer({
    minimum: 0,
    description: "Lanes of this node whose signer does not sign now; GET /signers names them.",
  }),
});

export const Readiness = named(
  "Readiness",
  {
    ready: Type.Boolean(),
    database: Type.Boolean(),
    chains: Type.Array(ChainReadiness),
    draining: Type.Boolean({ description: "The node is on its way out; requests are still taken." }),
  },
  { description: "Says which part is missing." },
);
export type Readiness = Static<typeof Readiness>;

export const ReadinessQuery = query({
  chain: Type.Integer({
    minimum: 1,
    description: "Chain id: ready where this chain is served. Without it, where any of the configured chains is.",
  }),
});
