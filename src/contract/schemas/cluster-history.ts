import type { Static } from "typebox";
import { Address, ChainId, InstanceId, NodeId, Timestamp, Version } from "./scalars.ts";
import { described, limit, list, named, nullable, oneOf, ordinal, query, text, truth } from "./shapes.ts";

const Takeover = named("Takeover", "A lane that came to another node.", {
  chainId: ChainId,
  signer: Address,
  from: nullable(described(NodeId, "The node that acted before; null: none did.")),
  to: text("The node that acts since.", "node-b"),
  fencingToken: ordinal(),
  why: nullable(text("What ended the one before, if that is known.", "its heartbeat ran out")),
  at: Timestamp,
});

const PastNode = named("PastNode", {
  nodeId: NodeId,
  instanceId: InstanceId,
  version: Version,
  startedAt: Timestamp,
  heartbeatAt: Timestamp,
  state: oneOf(
    ["alive", "draining", "expired", "gone"],
    "expired: its heartbeat ran out, and no node has taken its lanes yet. gone: it ended, or was declared dead.",
  ),
});

const DatabasePast = named("DatabasePast", {
  epoch: ordinal(),
  systemIdentifier: text("", "7301234567890123456"),
  timeline: text("", "1"),
  mayHaveLost: truth("Commits may be missing: lanes waited for an operator."),
  seenAt: Timestamp,
});

export const ClusterHistory = named("ClusterHistory", {
  takeovers: list(Takeover, "Newest first."),
  nodes: list(PastNode, "Those that are and those that were, newest first."),
  database: list(DatabasePast, "Which databases the nodes have worked on, newest first."),
});
export type ClusterHistory = Static<typeof ClusterHistory>;

export const ClusterHistoryQuery = query({ limit: described(limit(500), "Of each of the lists.") });
export type ClusterHistoryQuery = Static<typeof ClusterHistoryQuery>;
