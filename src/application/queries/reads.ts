import type { CompletionsQuery, Include, ListQuery, RequestQuery, SignersQuery } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { chainLooks } from "./chain-looks.ts";
import { explanationOf } from "./explain.ts";
import type { ExplainPorts } from "./explained-lane.ts";
import type { Feed } from "./feed.ts";
import { signer, signers } from "./signers.ts";
import { transaction, transactionByRequest, transactions } from "./transactions.ts";

export type ReadPorts = CallPorts & Pick<ExplainPorts, "kills"> & { readonly feed: Feed };

/** Calls that only read: any node answers them, whether or not it owns the lane. */
export function createReads(ports: ReadPorts) {
  const { store, feed } = ports;
  const looking = { ...ports, look: chainLooks(ports) };
  return {
    transaction: (txId: string, include?: readonly Include[]) => transaction(looking, txId, include),
    transactionByRequest: (query: RequestQuery, include?: readonly Include[]) =>
      transactionByRequest(looking, query, include),
    transactions: (query: ListQuery) => transactions(looking, query),
    /** Why it is not final yet, and what would help. `blockerByNonce`: of the transaction in its way, no more than the nonce. */
    explain: (txId: string, options?: { readonly blockerByNonce?: boolean }) => explanationOf(ports, txId, options),
    completions: (query: CompletionsQuery) => feed.page(query),
    /** One page, by signer and chain. Of the chain it shows what this node's loops last received. */
    signers: (query?: SignersQuery) => signers(ports, query),
    /** One item per chain the signer has a lane on; `fresh` asks the chain. UNKNOWN_SIGNER if no node holds its key. */
    signer: (name: string, options?: { readonly fresh?: boolean }) => signer(ports, name, options),
    /** Live instances. */
    nodes: async () => (await store.instances()).filter(({ dead, expired }) => !dead && !expired),
    /** Every lane that was ever acquired, with its owner if it has one. */
    leases: () => store.leases(),
  };
}
