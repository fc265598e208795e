import type { Call } from "../../../src/contract/calls/call.ts";
import { methodOf } from "../../../src/contract/calls/call.ts";
import { GROUPS } from "../../../src/contract/calls/index.ts";

type IdsOf<Group> = Group extends unknown ? keyof Group : never;
type CallId = IdsOf<(typeof GROUPS)[number][1]>;

/** Why no actor can make this call. */
interface NoPlace {
  readonly because: string;
}

/** The actor that makes the call in some simulations: the name of its file. */
type Place = "askers" | "callers" | "clerks" | "consumer" | "holders" | "killers" | "operators" | "payers" | Others;
type Others = "reservers" | "subscribers";

const OF_PROCESS: NoPlace = { because: "it is about the process or the release, not about what the nodes do together" };
const OF_ROUTE: NoPlace = { because: "its route in the HTTP adapter only translates to calls that are drawn here" };

/** Where the simulation makes each declared call. A call without a place fails a test. */
export const PLACES: Readonly<Record<CallId, Place | NoPlace>> = {
  createTransaction: "payers",
  createTransactions: "callers",
  getTransaction: "clerks",
  explainTransaction: "clerks",
  getTransactionByRequest: "clerks",
  listTransactions: "clerks",
  reserveNonce: "reservers",
  getReservation: "clerks",
  submitReserved: "reservers",
  useReserved: "clerks",
  releaseReserved: "reservers",
  requestSignature: "askers",
  listSignatures: "askers",
  getSignature: "askers",
  approveSignature: "askers",
  rejectSignature: "askers",
  jsonRpc: OF_ROUTE,
  jsonRpcOfChain: OF_ROUTE,
  listCompletions: "consumer",
  streamCompletions: OF_ROUTE,
  listWebhooks: "subscribers",
  addWebhook: "subscribers",
  getWebhook: "subscribers",
  changeWebhook: "subscribers",
  removeWebhook: "subscribers",
  pauseWebhook: "subscribers",
  resumeWebhook: "subscribers",
  replayWebhook: "subscribers",
  testWebhook: "subscribers",
  rotateWebhook: "subscribers",
  listSigners: "clerks",
  getSigner: "clerks",
  listSignerNames: "clerks",
  resubmitTransaction: "operators",
  repriceTransaction: "operators",
  cancelTransaction: "operators",
  replaceTransaction: "operators",
  resolveTransaction: "operators",
  approveTransaction: "clerks",
  rejectTransaction: "clerks",
  suspendTransaction: "holders",
  resumeTransaction: "holders",
  suspendSigner: "operators",
  resumeSigner: "operators",
  realignSigner: "operators",
  listKeys: "clerks",
  addKey: "clerks",
  revokeKey: "clerks",
  checkPolicy: "clerks",
  getPolicies: "clerks",
  applyPolicies: "askers",
  getPolicyUsage: "clerks",
  getCaller: "clerks",
  listNodes: "clerks",
  listLeases: "clerks",
  killEverything: "killers",
  endKillOfEverything: "killers",
  killSigner: "killers",
  endKillOfSigner: "killers",
  getAttention: "clerks",
  getOverview: "clerks",
  search: "clerks",
  getNonceRuler: "clerks",
  listNotices: "clerks",
  acknowledgeNotice: "clerks",
  getClusterHistory: "clerks",
  getHistory: "clerks",
  getCosts: "clerks",
  getAbis: "clerks",
  putAbis: "clerks",
  getHealth: OF_PROCESS,
  getReadiness: "clerks",
  getMetrics: OF_PROCESS,
  getOpenApi: OF_PROCESS,
  getDocs: OF_PROCESS,
};

/** Calls whose declaration does not name the method of the application that performs them. */
const BY_HAND: Readonly<Partial<Record<CallId, string>>> = {
  createTransaction: "create",
  createTransactions: "createBatch",
  requestSignature: "requestSignature",
  killEverything: "kill everything",
  endKillOfEverything: "endKill everything",
  killSigner: "kill signer",
  endKillOfSigner: "endKill signer",
  getReadiness: "readiness",
};

const declared = GROUPS.flatMap(([, calls]) => Object.entries(calls) as [CallId, Call][]);

/** Names under which `countCalls` counts the calls that have a place, by operation id. */
export const DRAWN: ReadonlyMap<CallId, string> = new Map(
  declared.flatMap(([id, call]) =>
    typeof PLACES[id] === "string" ? [[id, `call: ${nameOf(id, call)}`] as const] : [],
  ),
);

function nameOf(id: CallId, call: Call): string {
  const method = BY_HAND[id] ?? methodOf(call) ?? "";
  return call.action === undefined ? method : `${method} ${call.action}`;
}

/** Counts every call of the API by name, from now on. */
export function countCalls(api: object, count: (what: string) => void): void {
  for (const [name, call] of Object.entries(api) as [string, (...given: unknown[]) => unknown][]) {
    const counted = (...given: unknown[]) => {
      count(`call: ${name}${kindOf(name, given[0])}`);
      return call(...given);
    };
    Object.assign(api, { [name]: counted });
  }
}

/** What distinguishes declared calls that one method performs. */
function kindOf(name: string, request: unknown): string {
  const { action, signer } = (request ?? {}) as { readonly action?: unknown; readonly signer?: unknown };
  if (typeof action === "string") return ` ${action}`;
  if (name !== "kill" && name !== "endKill") return "";
  return signer === null ? " everything" : " signer";
}
