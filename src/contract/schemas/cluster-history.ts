import { type Static, Type } from "typebox";
import { Address, ChainId, Timestamp } from "./scalars.ts";
import { list, named, nullable, oneOf, ordinal, query, text, truth } from "./shapes.ts";

const HISTORY_LIMIT = 500;

const Takeover = named(
  "Takeover",
  {
    chainId: ChainId,
    signer: Address,
    from: nullable(text("The node that acted before; null: none did.")),
    to: text("The node that acts since."),
    fencingToken: ordinal(),
    why: nullable(text("What ended the one before, where that is known.")),
    at: Timestamp,
  },
  "A lane that came to another node.",
);

const PastNode = named("PastNode", {
  nodeId: text(),
  instanceId: text(),
  version: text(),
  startedAt: Timestamp,
  heartbeatAt: Timestamp,
  state: oneOf(
    ["alive", "draining", "expired", "gone"],
    "expired: its heartbeat ran out, and no node has taken its lanes yet. gone: it ended, or was declared dead.",
  ),
});

const DatabasePast = named("DatabasePast", {
  epoch: ordinal(),
  systemIdentifier: text(),
  timeline: text(),
  mayHaveLost: truth("Commits may be missing: lanes waited for an operator."),
  seenAt: Timestamp,
});

export const ClusterHistory = named("ClusterHistory", {
  takeovers: list(Takeover, "Newest first."),
  nodes: list(PastNode, "Those that are and those that were, newest first."),
  database: list(DatabasePast, "Which databases the nodes have worked on, newest first."),
});
export type ClusterHistory = Static<typeof ClusterHistory>;

export const ClusterHistoryQuery = query({
  limit: Type.Integer({ minimum: 1, maximum: HISTORY_LIMIT, default: 100, description: "Of each of the lists." }),
});
export type ClusterHistoryQuery = Static<typeof ClusterHistoryQuery>;
