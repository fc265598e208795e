import { abis } from "./abis.ts";
import { cluster, killSwitch, operations } from "./cluster.ts";
import { jsonRpcCalls } from "./json-rpc.ts";
import { keys } from "./keys.ts";
import { laneActions, signers } from "./lanes.ts";
import { messages } from "./messages.ts";
import { nonces } from "./nonces.ts";
import { policies } from "./policies.ts";
import { sight } from "./sight.ts";
import { statistics } from "./statistics.ts";
import { completions, transactionActions, transactions } from "./transactions.ts";
import { webhooks } from "./webhooks.ts";

/** Every call of the API, in the order of the reference documentation. */
export const GROUPS = [
  ["Transactions", transactions],
  ["Nonces", nonces],
  ["Messages", messages],
  ["JSON-RPC", jsonRpcCalls],
  ["Completions", completions],
  ["Webhooks", webhooks],
  ["Signers", signers],
  ["Transactions", transactionActions],
  ["Signers", laneActions],
  ["Keys", keys],
  ["Policies", policies],
  ["Cluster", cluster],
  ["Cluster", killSwitch],
  ["Sight", sight],
  ["Sight", statistics],
  ["Sight", abis],
  ["Operations", operations],
] as const;

export type Tag = (typeof GROUPS)[number][0];

type ValuesOf<G> = G extends unknown ? G[keyof G] : never;
/** Any declared call, with the literal types of its path and names. */
export type DeclaredCall = ValuesOf<(typeof GROUPS)[number][1]>;
