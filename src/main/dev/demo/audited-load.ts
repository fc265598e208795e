import { systemClock } from "../../../adapters/system/clock.ts";
import type { FencepostClient } from "../../../client/index.ts";
import type { CreatedTransaction } from "../../../contract/schemas/create.ts";
import type { Transaction } from "../../../contract/schemas/transaction-schema.ts";
import { defined } from "../../../domain/defined.ts";
import type { DevChain } from "../embedded/start-chain.ts";
import type { EmbeddedCluster, NodeChild } from "./embedded-cluster.ts";
import type { Progress } from "./progress.ts";

export interface Accepted extends CreatedTransaction {
  readonly atMs: number;
}

/** Sends `transactions` transfers, numbered from `from`. `onAccepted` gets the number of accepted transfers so far. */
type Send = (transactions: number, from: number, onAccepted: (count: number) => void) => Promise<void>;

const CALLERS = 16;
const PATIENCE_MS = 5_000;
const AGAIN_MS = 100;
/** Time without progress after which the remaining transfers count as lost. */
const GIVE_UP_MS = 60_000;

/** Runs `work`, which sends the transfers; then waits until they are confirmed, and compares database and chain. */
export async function auditedLoad<T>(
  cluster: EmbeddedCluster,
  { transactions, progress }: { readonly transactions: number; readonly progress: Progress },
  work: (send: Send) => Promise<T>,
) {
  const { chain, nodes } = cluster;
  const startedMs = systemClock.monotonicMs();
  const accepted: Accepted[] = [];
  const confirmed = followConfirmed(nodes);
  const show = () => progress.update(accepted.length, confirmed.count());
  const done = await work((count, from, onAccepted) =>
    inParallel(CALLERS, [from, from + count], async (number) => {
      const created = await sendUntilAccepted(cluster, number);
      accepted.push({ ...created, atMs: systemClock.monotonicMs() });
      show();
      onAccepted(accepted.length);
    }),
  );
  progress.phase("waiting until every transfer is final");
  await untilConfirmed(transactions, confirmed, show);
  // Show the total again: the last confirmation may have arrived since the last update.
  show();
  confirmed.stop();
  progress.phase("comparing database and chain");
  const survivor = nodes.find((node) => node.alive()) as NodeChild;
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  return { done, accepted, survivor, report: { ...(await audit(survivor.client, chain, accepted)), seconds } };
}

/** Calls `work` with every number of the range, `callers` calls at a time. */
export async function inParallel(
  callers: number,
  [from, until]: readonly [number, number],
  work: (number: number) => Promise<void>,
): Promise<void> {
  let next = from;
  const caller = async () => {
    for (let number = next++; number < until; number = next++) await work(number);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

/** Sends a transfer exactly once: after a failure, the same request id is sent again, to the next node. */
async function sendUntilAccepted(
  { signers, recipient, nodes }: EmbeddedCluster,
  number: number,
): Promise<CreatedTransaction> {
  const signer = signers[number % signers.length] as (typeof signers)[number];
  const request = { signer, requestId: `demo-${number}`, payload: { to: recipient, value: 1n } };
  for (let attempt = number; ; attempt++) {
    const node = nodes[attempt % nodes.length] as NodeChild;
    try {
      return await node.client.send(request, { signal: AbortSignal.timeout(PATIENCE_MS) });
    } catch {
      await systemClock.sleep(AGAIN_MS);
    }
  }
}

async function untilConfirmed(count: number, confirmed: { count(): number }, onLook: () => void) {
  let best = { count: -1, atMs: 0 };
  while (confirmed.count() < count) {
    const nowMs = systemClock.monotonicMs();
    if (confirmed.count() > best.count) best = { count: confirmed.count(), atMs: nowMs };
    if (nowMs - best.atMs > GIVE_UP_MS) return;
    await systemClock.sleep(100);
    onLook();
  }
}

/** Follows the completion feed of any node that responds. */
function followConfirmed(nodes: readonly NodeChild[]) {
  const confirmed = new Set<string>();
  let isStopped = false;
  let after = 0;
  const follow = async () => {
    for (let turn = 0; !isStopped; turn++) {
      const { client } = nodes[turn % nodes.length] as NodeChild;
      const query = { after, limit: 1_000, wait: 1 };
      try {
        const page = await client.completionsPage(query, { signal: AbortSignal.timeout(3_000) });
        for (const { txId, state } of page.items) if (state === "CONFIRMED") confirmed.add(txId);
        after = page.next;
      } catch {
        await systemClock.sleep(100);
      }
    }
  };
  void follow();
  const stop = () => {
    isStopped = true;
  };
  return { count: () => confirmed.size, stop };
}

/** Compares the accepted transactions of the database with those executed on the chain. */
async function audit(client: FencepostClient, chain: DevChain, accepted: readonly Accepted[]) {
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
  for (let after: string | undefined; ; ) {
    const { items, next } = await client.list({ limit: 200, order: "oldest", ...defined({ after }) });
    all.push(...items);
    if (next === null) return all;
    after = next;
  }
}

/** Transactions per sender, counted block by block. */
async function executed(chain: DevChain): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const head = Number(await chain.rpc("eth_blockNumber"));
  for (let number = 1; number <= head; number++) {
    const block = (await chain.rpc("eth_getBlockByNumber", [`0x${number.toString(16)}`, true])) as {
      readonly transactions: readonly { readonly from: string }[];
    };
    for (const { from } of block.transactions) {
      const sender = from.toLowerCase();
      counts.set(sender, (counts.get(sender) ?? 0) + 1);
    }
  }
  return counts;
}
