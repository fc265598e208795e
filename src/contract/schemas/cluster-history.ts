import { type Static, Type } from "typebox";
import { Address, ChainId, Timestamp } from "./scalars.ts";
import { named, nullable, oneOf, query } from "./shapes.ts";

const HISTORY_LIMIT = 500;

const Takeover = named(
  "Takeover",
  {
    chainId: ChainId,
    signer: Address,
    from: nullable(Type.String({ description: "The node that acted before; null: none did." })),
    to: Type.String({ description: "The node that acts since." }),
    fencingToken: Type.Integer({ minimum: 1 }),
    why: nullable(Type.String({ description: "What ended the one before, where that is known." })),
    at: Timestamp,
  },
  { description: "A lane that came to another node." },
);

const PastNode = named("PastNode", {
  nodeId: Type.String(),
  instanceId: Type.String(),
  version: Type.String(),
  startedAt: Timestamp,
  heartbeatAt: Timestamp,
  state: oneOf(["alive", "draining", "expired", "gone"], {
    description:
      "expired: its heartbeat ran out, and no node has taken its lanes yet. gone: it ended, or was declared dead.",
  }),
});

const DatabasePast = named("DatabasePast", {
  epoch: Type.Integer({ minimum: 1 }),
  systemIdentifier: Type.String(),
  timeline: Type.String(),
  mayHaveLost: Type.Boolean({ description: "Commits may be missing: lanes waited for an operator." }),
  seenAt: Timestamp,
});

export const ClusterHistory = named("ClusterHistory", {
  takeovers: Type.Array(Takeover, { description: "Newest first." }),
  nodes: Type.Array(PastNode, { description: "Those that are and those that were, newest first." }),
  database: Type.Array(DatabasePast, { description: "Which databases the nodes have worked on, newest first." }),
});
export type ClusterHistory = Static<typeof ClusterHistory>;

export const ClusterHistoryQuery = query({
  limit: Type.Integer({ minimum: 1, maximum: HISTORY_LIMIT, default: 100, description: "Of each of the lists." }),
});
export type ClusterHistoryQuery = Static<typeof ClusterHistoryQuery>;
