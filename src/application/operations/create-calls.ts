/** Creates as callers ask for them, one or many. */
import { FencepostError } from "../../domain/errors.ts";
import type { Created, FencepostApi } from "../api.ts";
import type { Creates } from "../stages/1-create/create.ts";

export function createCalls(
  creates: Pick<Creates, "create">,
): Pick<FencepostApi, "create" | "createBatch" | "createNamed"> {
  return {
    create: async (request, owner, limits) => {
      const [result] = await creates.create([{ request, owner, limits }]);
      if (result instanceof FencepostError) throw result;
      return result as Created;
    },
    createBatch: (requests, owner, limits) => creates.create(requests.map((request) => ({ request, owner, limits }))),
    createNamed: (named, owner, limits) => creates.create(named.map((each) => ({ ...each, owner, limits }))),
  };
}
