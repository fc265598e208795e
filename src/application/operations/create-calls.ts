/** Creates as callers ask for them, one or many. */
import { FencepostError } from "../../domain/errors.ts";
import type { CreateLimits } from "../../domain/keys/principal.ts";
import type { Created, CreateRequest, NamedCreate } from "../api.ts";
import type { Creates } from "../stages/1-create/create.ts";

export function createCalls(creates: Pick<Creates, "create">) {
  return {
    /**
     * Validates, prepares, allocates; resolves once the transaction is durable. It belongs to `owner`, the name of an API
     * key, and FORBIDDEN says that it is outside that key's limits.
     */
    create: async (request: CreateRequest, owner?: string | null, limits?: CreateLimits): Promise<Created> => {
      const [result] = await creates.create([{ request, owner, limits }]);
      if (result instanceof FencepostError) throw result;
      return result as Created;
    },
    /** In order; partial success is normal. Never throws for an item. */
    createBatch: (requests: readonly CreateRequest[], owner?: string | null, limits?: CreateLimits) =>
      creates.create(requests.map((request) => ({ request, owner, limits }))),
    /** The same, of creates whose ids are known before they are made: one whose answer does not come in time can be named. */
    createNamed: (named: readonly NamedCreate[], owner?: string | null, limits?: CreateLimits) =>
      creates.create(named.map((each) => ({ ...each, owner, limits }))),
  };
}
