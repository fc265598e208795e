import type { FencepostClient } from "../../../client/index.ts";
import type { Transaction } from "../../../contract/schemas/transaction-schema.ts";
import type { DevChain } from "../embedded/start-chain.ts";
import type { Accepted } from "./callers.ts";

/** Compares the accepted transactions of the database with the executed ones of the chain. */
export async function audit(client: FencepostClient, chain: DevChain, accepted: readonly Accepted[]) {
  const stored = await allTransactions(client);
  const states = new Map(stored.map(({ signer, requestId, state }) => [`${signer} ${requestId}`, state]));
  const confirmed = accepted.filter(({ signer, requestId }) => states.get(`${signer} ${requestId}`) === "CONFIRMED");
  const counts = await executed(chain);
  const signers = new Set(accepted.map(({ signer }) => signer));
  let duplicate = 0;
  let gaps = 0;
  for (const signer of signers) {
    const ours = stored.filter((transaction) => transaction.signer === signer);
    const nonces = new Set(ours.map(({ nonce }) => nonce));
    const asked = new Set(ours.map(({ requestId }) => requestId));
    duplicate += Math.max(0, (counts.get(signer.toLowerCase()) ?? 0) - asked.size);
    gaps += Math.max(...ours.map(({ nonce }) => nonce ?? -1)) + 1 - nonces.size;
  }
  const lost = accepted.length - confirmed.length;
  return { accepted: accepted.length, confirmed: confirmed.length, lost, duplicate, gaps };
}

async function allTransactions(client: FencepostClient): Promise<readonly Transaction[]> {
  const all: Transaction[] = [];
  let after: string | undefined;
  do {
    const page = await client.list({ limit: 200, order: "oldest", ...(after === undefined ? {} : { after }) });
    all.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return all;
}

/** Transactions per sender, counted block by block. */
async function executed(chain: DevChain): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const head = Number(await chain.rpc("eth_blockNumber"));
  for (let number = 1; number <= head; number++) {
    const block = (await chain.rpc("eth_getBlockByNumber", [`0x${number.toString(16)}`, true])) as {
      readonly transactions: readonly { readonly from: string }[];
    };
    for (const sender of block.transactions.map(({ from }) => from.toLowerCase())) {
      counts.set(sender, (counts.get(sender) ?? 0) + 1);
    }
  }
  return counts;
}
