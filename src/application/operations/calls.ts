/**
 * One typed record of the functions that perform the API calls; HTTP, the library and the tests all use it. Each call
 * is described at its implementation. A call that fails for a reason that the caller can act on throws a
 * FencepostError.
 */
import { FencepostError, orDatabaseSilent } from "../../domain/errors.ts";
import type { CreateLimits } from "../../domain/keys/principal.ts";
import type { Created, CreateRequest, NamedCreate } from "../api.ts";
import { type ReadinessParts, readiness } from "../queries/readiness.ts";
import { createReads, type ReadPorts } from "../queries/reads.ts";
import { createSights, type SightPorts } from "../queries/sights.ts";
import type { Creates } from "../stages/1-create/create.ts";
import { createJsonRpc, type JsonRpcPorts } from "./json-rpc.ts";
import { createKeyOperations } from "./keys.ts";
import { type KillPorts, killOperations } from "./kill.ts";
import { noticeOperations } from "./notices.ts";
import { createOperations, type OperationPorts } from "./operations.ts";
import { createPolicyCalls, type PolicyPorts } from "./policies.ts";
import { type WebhookPorts, webhookOperations } from "./webhooks.ts";

export type FencepostApi = ReturnType<typeof callsOf>;

interface Answering extends ReadinessParts {
  readonly creates: Creates;
}

type AllPorts = ReadPorts &
  SightPorts &
  KillPorts &
  OperationPorts &
  PolicyPorts &
  JsonRpcPorts &
  WebhookPorts &
  Answering;

export function callsOf(ports: AllPorts) {
  return {
    ...wrapped({ ...createReads(ports), ...createSights(ports), ...createPolicyCalls(ports) }, reading),
    ...killOperations(ports),
    ...noticeOperations(ports),
    ...createOperations(ports),
    ...createKeyOperations(ports),
    ...webhookOperations(ports),
    ...createJsonRpc(ports),
    ...createCalls(ports.creates),
    /** Readiness for one chain, or for any chain if none is named. UNKNOWN_CHAIN if the named one is not configured. */
    readiness: (chainId?: number) => readiness(ports, chainId),
  };
}

type Call = (...given: never[]) => Promise<unknown>;

/** Wraps each of the calls with `wrap`. */
export function wrapped<Calls extends object>(calls: Calls, wrap: (call: Call) => Call): Calls {
  const all = Object.entries(calls).map(([name, call]) => [name, wrap(call)]);
  return Object.fromEntries(all) as Calls;
}

/**
 * Wraps a read-only call: if it fails, the error reports only that the database does not answer, because a read changes
 * nothing.
 */
function reading(call: Call): Call {
  return (...given) => orDatabaseSilent(call(...given), null);
}

/** Create calls, for one transaction or many. */

export function createCalls(creates: Pick<Creates, "create">) {
  return {
    /**
     * Creates a transaction: validates, prepares and allocates; resolves once the transaction is durable. It belongs to
     * `owner`, the name of an API key. FORBIDDEN if the create is outside that key's limits.
     */
    create: async (request: CreateRequest, owner?: string | null, limits?: CreateLimits): Promise<Created> => {
      const [result] = await creates.create([{ request, owner, limits }]);
      if (result instanceof FencepostError) throw result;
      return result as Created;
    },
    /** Creates a batch: results in the order of the requests; partial success is normal. Never throws for an item. */
    createBatch: (requests: readonly CreateRequest[], owner?: string | null, limits?: CreateLimits) =>
      creates.create(requests.map((request) => ({ request, owner, limits }))),
    /**
     * Like `createBatch`, for creates whose ids were assigned before. If the response does not arrive in time, a create
     * can be looked up by its id.
     */
    createNamed: (named: readonly NamedCreate[], owner?: string | null, limits?: CreateLimits) =>
      creates.create(named.map((each) => ({ ...each, owner, limits }))),
  };
}
