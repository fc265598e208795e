/** Creates as callers ask for them, one or many; of those that name their nonce, a repeat is known by it. */
import { FencepostError } from "../../domain/errors.ts";
import { fingerprint } from "../../domain/fingerprint.ts";
import { isAnothers } from "../../domain/principal.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { Created, FencepostApi } from "../api.ts";
import { hear, type NormalisePorts } from "../requests/normalise.ts";
import type { Told } from "../stages/1-create/create.ts";

export interface CreateCallPorts {
  readonly store: Pick<QueryStore, "transactionAt">;
  readonly intents: NormalisePorts;
}

type Fate = Created | FencepostError;

export function createCalls(
  ports: CreateCallPorts,
  create: (told: readonly Told[]) => Promise<readonly Fate[]>,
): Pick<FencepostApi, "create" | "createBatch" | "createNamed"> {
  const all = async (told: readonly Told[]): Promise<readonly Fate[]> => {
    const fates = await create(told);
    return Promise.all(fates.map((fate, at) => orHeldThere(ports, told[at] as Told, fate)));
  };
  return {
    create: async (request, owner, limits) => {
      const [fate] = await all([{ request, owner, limits }]);
      if (fate instanceof FencepostError) throw fate;
      return fate as Created;
    },
    createBatch: (requests, owner, limits) => all(requests.map((request) => ({ request, owner, limits }))),
    createNamed: (creates, owner, limits) => all(creates.map((each) => ({ ...each, owner, limits }))),
  };
}

/**
 * A nonce that is not the next one: where the very payload stands there already, this is its repeat. That it is refused was
 * decided behind the lane's lock; which transaction has a nonce does not change afterwards.
 */
async function orHeldThere(ports: CreateCallPorts, told: Told, fate: Fate): Promise<Fate> {
  if (!(fate instanceof FencepostError) || fate.extras.nextNonce === undefined) return fate;
  const asked = hear(ports.intents, told.request, told);
  if (asked instanceof FencepostError || asked.exactNonce === undefined) return fate;
  const found = await ports.store.transactionAt(asked.lane, asked.exactNonce);
  if (found === null || isAnothers(found.owner, asked.owner)) return fate;
  const { txId, lane, requestId, nonce, state } = found;
  if (fingerprint(found.payload, found) !== asked.fingerprint) return fate;
  return { outcome: "existing", txId, lane, requestId, nonce, state };
}
