import { orDatabaseSilent } from "../../domain/errors.ts";
import type { LeaseStore } from "../../ports/lease-store.ts";
import type { SightStore } from "../../ports/sight-store.ts";
import type { FencepostApi, JsonRpcApi, KeyOperation, OperationName, PolicyApi } from "../api.ts";
import type { SightApi } from "../sight-api.ts";
import { ChainLooks } from "./chain-looks.ts";
import { type ExplainPorts, explainTransaction } from "./explain.ts";
import type { Feed } from "./feed.ts";
import { type SignerQueryPorts, signer, signers } from "./signers.ts";
import { type TransactionQueryPorts, transaction, transactionByRequest, transactions } from "./transactions.ts";

export interface ReadPorts
  extends TransactionQueryPorts,
    Pick<SignerQueryPorts, "signer">,
    Pick<ExplainPorts, "clock" | "kills" | "lanesOf"> {
  readonly store: TransactionQueryPorts["store"] &
    Pick<LeaseStore, "instances" | "leases"> &
    Pick<SightStore, "reports">;
  readonly feed: Feed;
}

/** Everything that is only read: any node answers it, whether or not it owns the lane. */
export function createReads(
  ports: ReadPorts,
): Omit<
  FencepostApi,
  | "create"
  | "createBatch"
  | "readiness"
  | "kill"
  | "endKill"
  | "acknowledge"
  | KeyOperation
  | OperationName
  | PolicyApi
  | JsonRpcApi
  | keyof SightApi
> {
  const { store, feed } = ports;
  const looking = { ...ports, looks: new ChainLooks(ports) };
  const reading = <T>(work: Promise<T>): Promise<T> => orDatabaseSilent(work, null);
  const liveNodes = async () => (await store.instances()).filter(({ dead, expired }) => !dead && !expired);
  return {
    transaction: (txId, include) => reading(transaction(looking, txId, include)),
    transactionByRequest: (query, include) => reading(transactionByRequest(looking, query, include)),
    transactions: (query) => reading(transactions(looking, query)),
    explain: (txId, options) => reading(explainTransaction(ports, txId, options)),
    completions: (query) => reading(feed.page(query)),
    signers: (query = {}) => reading(signers(ports, query)),
    signer: (name, options) => reading(signer(ports, name, options)),
    nodes: () => reading(liveNodes()),
    leases: () => reading(store.leases()),
  };
}
