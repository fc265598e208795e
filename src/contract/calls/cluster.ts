import { ClusterNodes, Health, LaneLeases, Readiness, ReadinessQuery } from "../cluster.ts";
import { KillOrder, KillSwitchState } from "../kill.ts";
import { ADMIN, type CallScope, declared, READ } from "./call.ts";

export const cluster = declared({
  listNodes: {
    at: "get /api/v1/nodes",
    scope: READ,
    by: "any node",
    face: "nodes",
    summary: "List the nodes that are alive",
    answers: { 200: { description: "Oldest first.", schema: ClusterNodes } },
  },
  listLeases: {
    at: "get /api/v1/leases",
    scope: READ,
    by: "any node",
    face: "leases",
    summary: "List who acts for which lane",
    answers: { 200: { description: "Lanes that have an owner.", schema: LaneLeases } },
  },
});

/** Whoever may stop one thing, or give others their keys, may stop everything; to send again is `admin`'s alone. */
const KILL: CallScope = { scope: "operate", or: "admin" };

const kill = {
  scope: KILL,
  by: "any node",
  does: "kill",
  takes: ["action"],
  urgent: true,
  description:
    "Needs `operate` or `admin`. Nothing is sent from any node until this is ended: no first send, no repeat, no new price; creates are accepted and wait. The node that is asked stops at once, writes the order down, and tells the others; each stops within a second that it or the database can be reached from. What a node is sending at that moment may still arrive.",
  body: KillOrder,
  answers: {
    200: { description: "In force, and durable.", schema: KillSwitchState },
    202: {
      description: "In force, not durable yet (`durable: false`): that is tried until it is.",
      schema: KillSwitchState,
    },
  },
} as const;

const endKill = {
  scope: ADMIN,
  by: "any node",
  does: "endKill",
  takes: ["action"],
  urgent: true,
  description: "Needs `admin`. Answers once the end is durable; the other nodes go on within a second.",
  body: KillOrder,
  answers: {
    200: {
      description: "Ended; `kills` has what is still in force.",
      schema: KillSwitchState,
      example: "unkilled",
    },
  },
} as const;

export const killSwitch = declared({
  killEverything: { at: "post /api/v1/kill", summary: "Stop everything, on all nodes", ...kill },
  endKillOfEverything: { at: "delete /api/v1/kill", summary: "End the order to stop everything", ...endKill },
  killSigner: {
    at: "post /api/v1/signers/{signer}/kill",
    summary: "Stop one signer, on all nodes and chains",
    ...kill,
  },
  endKillOfSigner: {
    at: "delete /api/v1/signers/{signer}/kill",
    summary: "End the order to stop one signer",
    ...endKill,
  },
});

export const operations = declared({
  getHealth: {
    at: "get /healthz",
    scope: "open",
    summary: "Is the process alive",
    answers: { 200: { description: "It is.", schema: Health } },
  },
  getReadiness: {
    at: "get /readyz",
    scope: "open",
    summary: "Should this node get traffic",
    query: ReadinessQuery,
    answers: {
      200: { description: "Ready.", schema: Readiness },
      503: { description: "Not ready; says which part.", schema: Readiness, example: "notReady" },
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
