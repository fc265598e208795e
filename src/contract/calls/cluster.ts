import { type Static, Type } from "typebox";
import { SCOPES } from "../../domain/keys/principal.ts";
import { AttentionItem } from "../schemas/attention.ts";
import { Address, BlockNumber, ChainId, InstanceId, NodeId, Timestamp, Version } from "../schemas/scalars.ts";
import {
  count,
  described,
  list,
  named,
  nullable,
  object,
  oneOf,
  ordinal,
  query,
  text,
  truth,
} from "../schemas/shapes.ts";
import { ADMIN, type CallScope, declared, ok, READ } from "./call.ts";

const identity = {
  nodeId: described(NodeId, "The node's name; it keeps it over restarts if it was given one."),
  instanceId: described(InstanceId, "One life of the node: new at each start."),
};

export const ClusterNode = named("ClusterNode", {
  ...identity,
  url: text("Where other nodes reach it; empty for one that is embedded and serves no HTTP.", "http://10.0.0.7:3000"),
  version: Version,
  mode: oneOf(["basic", "worker-queue"]),
  startedAt: Timestamp,
  heartbeatAt: Timestamp,
  lanes: count("How many lanes it owns."),
});
export type ClusterNode = Static<typeof ClusterNode>;

export const ClusterNodes = named("ClusterNodes", { items: list(ClusterNode) });
export type ClusterNodes = Static<typeof ClusterNodes>;

export const LaneLease = named("LaneLease", {
  chainId: ChainId,
  signer: Address,
  ...identity,
  fencingToken: ordinal("Grows with every owner; the database refuses older ones."),
  acquiredAt: Timestamp,
  expiresAt: described(Timestamp, "When the owner's heartbeat runs out unless it is renewed: one for all its lanes."),
});
export type LaneLease = Static<typeof LaneLease>;

export const LaneLeases = named("LaneLeases", { items: list(LaneLease) });
export type LaneLeases = Static<typeof LaneLeases>;

export const Health = named("Health", { status: oneOf(["ok"]), version: Version });
export type Health = Static<typeof Health>;

const ChainReadiness = object({
  chainId: ChainId,
  reachable: truth("", true),
  head: nullable(BlockNumber),
  headSince: Type.Optional(
    nullable(described(Timestamp, "When this node first saw that head, by its own clock; null: none was seen.")),
  ),
  signersAway: count("Lanes of this node whose signer does not sign now; GET /signers names them."),
  troubles: Type.Optional(
    list(AttentionItem.properties.code, "Codes that GET /attention shows for this chain and its endpoints.", []),
  ),
});

export const Readiness = named("Readiness", "Says which part is missing.", {
  ready: truth("", true),
  database: truth("", true),
  chains: list(ChainReadiness),
  draining: truth("The node is on its way out; requests are still taken."),
});
export type Readiness = Static<typeof Readiness>;

export const ReadinessQuery = query({
  chain: ordinal("Chain id: ready where this chain is served. Without it, where any of the configured chains is."),
});

const STOLEN = "the key may be stolen";

export const KillOrder = named(
  "KillOrder",
  { examples: [{ reason: STOLEN }] },
  { reason: Type.Optional(Type.String({ maxLength: 1_000, description: "Why; kept for the audit." })) },
);
export type KillOrder = Static<typeof KillOrder>;

export const KillSwitchState = named("KillSwitchState", {
  durable: truth("Every kill in force is stored and outlives the node. False: the node keeps trying.", true),
  kills: list(
    object({
      killId: text("", "019a4b7e-5d2c-7c3e-9f10-2b4d6f8a0c1e"),
      signer: nullable(Address),
      actor: text("", "operator:on-call"),
      reason: text("", STOLEN),
    }),
    "The kills in force, as the node that was asked knows them; `signer` null is everything.",
  ),
  nodes: list(
    object({ nodeId: NodeId, url: text("", "http://10.0.0.7:3000"), told: truth("", true) }),
    "After a kill or its end: the other nodes, and whether each confirmed it before the answer.",
  ),
});
export type KillSwitchState = Static<typeof KillSwitchState>;

export const Caller = named("Caller", "The API key of this request, and the node that answers it.", {
  key: nullable(text("Name of the API key; null: none is required here.", "alice")),
  scopes: list(oneOf(SCOPES)),
  signers: nullable(list(Address, "The only ones that it may see and use; null: all.")),
  chains: nullable(list(ChainId, "As signers.")),
  nodeId: NodeId,
  version: Version,
});
export type Caller = Static<typeof Caller>;

export const cluster = declared({
  getCaller: {
    at: "get /api/v1/me",
    scope: READ,
    face: "me",
    summary: "Read what this API key may do",
    answers: ok("Of the key that is sent.", Caller),
  },
  listNodes: {
    at: "get /api/v1/nodes",
    scope: READ,
    face: "nodes",
    summary: "List the nodes that are alive",
    answers: ok("Oldest first.", ClusterNodes),
  },
  listLeases: {
    at: "get /api/v1/leases",
    scope: READ,
    face: "leases",
    summary: "List who acts for which lane",
    answers: ok("Lanes that have an owner.", LaneLeases),
  },
});

/**
 * Scope of a kill. A key that may suspend single lanes (`operate`) or manage keys (`admin`) may also kill everything;
 * only `admin` may end a kill.
 */
const KILL: CallScope = { scope: "operate", or: "admin" };

const kill = {
  scope: KILL,
  does: "kill",
  takes: ["action"],
  urgent: true,
  description:
    "Needs `operate` or `admin`. Nothing is sent from any node until this is ended: no first send, no repeat, no new price; creates are accepted and wait. The node that is asked stops at once, stores the kill, and notifies the others; each stops within a second if it or the database can be reached. What a node is sending at that moment may still arrive.",
  body: KillOrder,
  answers: {
    200: { description: "In force, and durable.", schema: KillSwitchState },
    202: {
      description: "In force, not durable yet (`durable: false`): that is tried until it is.",
      schema: KillSwitchState,
      example: { durable: false },
    },
  },
} as const;

const endKill = {
  scope: ADMIN,
  does: "endKill",
  takes: ["action"],
  urgent: true,
  description: "Needs `admin`. Answers once the end is durable; the other nodes go on within a second.",
  body: KillOrder,
  answers: {
    200: {
      description: "Ended; `kills` has what is still in force.",
      schema: KillSwitchState,
      example: { kills: [], nodes: [] },
    },
  },
} as const;

export const killSwitch = declared({
  killEverything: { at: "post /api/v1/kill", summary: "Stop everything, on all nodes", ...kill },
  endKillOfEverything: { at: "delete /api/v1/kill", summary: "End the kill of everything", ...endKill },
  killSigner: {
    at: "post /api/v1/signers/{signer}/kill",
    summary: "Stop one signer, on all nodes and chains",
    ...kill,
  },
  endKillOfSigner: {
    at: "delete /api/v1/signers/{signer}/kill",
    summary: "End the kill of one signer",
    ...endKill,
  },
});

export const operations = declared({
  getHealth: {
    at: "get /healthz",
    scope: "open",
    summary: "Is the process alive",
    answers: ok("It is.", Health),
  },
  getReadiness: {
    at: "get /readyz",
    scope: "open",
    summary: "Should this node get traffic",
    query: ReadinessQuery,
    answers: {
      200: { description: "Ready.", schema: Readiness },
      503: {
        description: "Not ready; says which part.",
        schema: Readiness,
        example: { ready: false, database: false },
      },
    },
    errors: ["INVALID_REQUEST", "UNKNOWN_CHAIN"],
  },
  getMetrics: {
    at: "get /metrics",
    scope: READ,
    summary: "Prometheus metrics",
    answers: { 200: { description: "Text exposition format.", contentType: "text/plain" } },
  },
  getOpenApi: {
    at: "get /openapi.json",
    scope: "open",
    summary: "This document",
    answers: { 200: { description: "OpenAPI 3.1.", contentType: "application/json" } },
    errors: ["FORBIDDEN"],
  },
  getDocs: {
    at: "get /docs",
    scope: "open",
    summary: "This reference, to browse",
    answers: { 200: { description: "HTML.", contentType: "text/html" } },
    errors: ["FORBIDDEN"],
  },
});
