/** Compares what callers were promised and what arrived at endpoints with the database and the chain. */
import type { Address, Hash, Hex } from "../../../domain/lane.ts";
import type { DevChain } from "../embedded/start-chain.ts";
import type { TransactionFact } from "./check.ts";
import type { Arrival } from "./endpoint.ts";
import { type AskChain, auditOf, type MinedTransaction, type Query } from "./facts.ts";
import type { LoadRecord, SignedRecord } from "./load-record.ts";
import type { Subscriber } from "./subscriber.ts";

/** A stop is judged by when bytes arrive at an endpoint: that much later than they left. */
const ARRIVAL_MS = 300;

interface Sources {
  readonly query: Query;
  readonly chain: DevChain;
  readonly arrivals: readonly Arrival[];
  readonly subscriber: Subscriber;
  /** Hashes that the campaign sent with a signer's key, as another program would. */
  readonly foreign: ReadonlySet<Hash>;
  readonly limit: ValueLimit;
}

/** The signer whose value in a day is limited, and the number of days of the campaign. */
export interface ValueLimit {
  readonly limited: Address;
  readonly perDay: bigint;
  readonly days: number;
}

export async function judge(record: LoadRecord, sources: Sources): Promise<readonly string[]> {
  const { query, chain, foreign, subscriber, limit } = sources;
  const { keccak256, recoverMessageAddress } = await import("viem/utils");
  const arrivals = sources.arrivals.map((each) => ({ ...each, hash: keccak256(each.raw) }));
  const ask: AskChain = (calls) => Promise.all(calls.map(([method, params]) => chain.rpc(method, params)));
  const { facts, mined, violations } = await auditOf(query, { ask, sent: arrivals.map(({ hash }) => hash), foreign });
  const signed = await Promise.all(
    record.signed.map(async (each) => ({ ...each, by: await recoverMessageAddress(each) })),
  );
  return [
    ...violations,
    ...brokenPromises(record, facts.transactions),
    ...afterStops({ ...record, signed }, { arrivals, transactions: facts.transactions }),
    ...falseSignatures(signed),
    ...aboveLimit(
      mined.filter(({ hash }) => !foreign.has(hash)),
      limit,
    ),
    ...subscriber.troubles(facts.completions),
  ];
}

export function brokenPromises(
  { promised }: Pick<LoadRecord, "promised">,
  transactions: readonly TransactionFact[],
): readonly string[] {
  const known = new Map(transactions.map((each) => [each.txId, each]));
  return promised.flatMap(({ txId, signer, requestId }) => {
    const found = known.get(txId);
    const isKept = found !== undefined && found.signer === signer && found.requestId === requestId;
    return isKept ? [] : [`I4: ${txId}, request ${requestId}, was promised and is not there`];
  });
}

/** Bytes that arrived and signatures that were given while a stop was in force. */
export function afterStops(
  { stops, signed }: Pick<LoadRecord, "stops" | "signed">,
  {
    arrivals,
    transactions,
  }: {
    readonly arrivals: readonly (Pick<Arrival, "atMs" | "node"> & { readonly hash: Hash })[];
    readonly transactions: readonly TransactionFact[];
  },
): readonly string[] {
  const signerOf = new Map<Hash | null, Address>(
    transactions.flatMap(({ signer, attempts }) => attempts.map(({ hash }) => [hash, signer] as const)),
  );
  return stops.flatMap(({ what, signer, node, fromMs, untilMs }) => {
    const lane = signer?.toLowerCase() ?? null;
    const concerns = (of: { readonly node: string }, by: string | undefined) =>
      (node === null || of.node === node) && (lane === null || by === lane);
    const late = arrivals.filter(
      (each) =>
        each.atMs > fromMs + ARRIVAL_MS &&
        each.atMs < untilMs &&
        concerns(each, signerOf.get(each.hash)?.toLowerCase()),
    );
    const given = signed.filter(
      (each) => each.askedMs > fromMs && each.atMs < untilMs && concerns(each, each.signer.toLowerCase()),
    );
    return [
      ...late.map(
        ({ hash, atMs }) => `stop: ${hash} arrived ${Math.round(atMs - fromMs)} ms after ${what} was answered`,
      ),
      ...given.map(({ requestId }) => `stop: ${requestId} was signed after ${what} was answered`),
    ];
  });
}

/** Signatures that are not the signer's, and requests that got two different ones. */
export function falseSignatures(signed: readonly (SignedRecord & { readonly by: Address })[]): readonly string[] {
  const first = new Map<string, Hex>();
  return signed.flatMap(({ signer, requestId, signature, by }) => {
    const before = first.get(requestId) ?? signature;
    first.set(requestId, before);
    return [
      ...(before === signature ? [] : [`I5: ${requestId} has two signatures`]),
      ...(by.toLowerCase() === signer.toLowerCase() ? [] : [`sign: the signature of ${requestId} is not ${signer}'s`]),
    ];
  });
}

export function aboveLimit(
  mined: readonly Pick<MinedTransaction, "from" | "value">[],
  { limited, perDay, days }: ValueLimit,
): readonly string[] {
  const sum = mined.filter(({ from }) => from === limited).reduce((total, { value }) => total + value, 0n);
  return sum > perDay * BigInt(days) ? [`policy: ${limited} moved ${sum} wei in ${days} days, above ${perDay}`] : [];
}
