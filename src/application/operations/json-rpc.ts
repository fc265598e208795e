/** What Ethereum's JSON-RPC asks for beside the API: a nonce by name, a hash soon, a transaction's bytes, and the chain itself. */
import { FencepostError, unavailable } from "../../domain/errors.ts";
import { fingerprint } from "../../domain/fingerprint.ts";
import { isAnothers } from "../../domain/principal.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import type { LaneStore } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { AttemptRecord, QueryStore } from "../../ports/query-store.ts";
import type { Created, FencepostApi, JsonRpcApi, SignedView } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { FirstHashes } from "../queries/first-hashes.ts";
import { hear, type Naming, type NormalisePorts } from "../requests/normalise.ts";
import type { Told } from "../stages/1-create/create.ts";

export interface JsonRpcPorts extends Pick<Ports, "clock" | "codec" | "entropy"> {
  readonly store: Pick<QueryStore, "firstHashes" | "transactions" | "transactionAt"> &
    Pick<LaneStore, "loadRawTransactions">;
  readonly intents: NormalisePorts;
  readonly chains: ReadonlyMap<number, ChainContext>;
}

type Fate = Created | FencepostError;

export function createJsonRpc(
  ports: JsonRpcPorts,
  create: (told: readonly Told[]) => Promise<readonly Fate[]>,
): Pick<FencepostApi, JsonRpcApi> {
  const firstHashes = new FirstHashes(ports);
  return {
    newIds: async (count) => Array.from({ length: count }, () => ports.entropy.uuid()),
    createNamed: async (creates, owner, limits) => {
      const told = creates.map((each) => ({ ...each, owner, limits, mayNameNonce: true }));
      const fates = await create(told);
      return Promise.all(fates.map((fate, at) => orHeldThere(ports, told[at] as Told & Naming, fate)));
    },
    firstHash: (txId, within) => firstHashes.of(txId, within),
    signedAs: (chainId, txHash) => signedAs(ports, chainId, txHash),
    askChain: async (chainId, method, params) => {
      const context = ports.chains.get(chainId);
      if (context === undefined) throw new FencepostError("UNKNOWN_CHAIN", `chain ${chainId} is not configured here`);
      return context.chain.passOn(method, params).catch((error: unknown) => {
        throw error instanceof ChainUnavailable ? unavailable("the chain does not answer", error) : error;
      });
    },
  };
}

/**
 * A nonce that is not the next one: where the very payload stands there already, this is its repeat. That it is refused was
 * decided behind the lane's lock; which transaction has a nonce does not change afterwards.
 */
async function orHeldThere(ports: JsonRpcPorts, told: Told & Naming, fate: Fate): Promise<Fate> {
  if (!(fate instanceof FencepostError) || fate.extras.nextNonce === undefined) return fate;
  const asked = hear(ports.intents, told.request, told);
  if (asked instanceof FencepostError || asked.exactNonce === undefined) return fate;
  const found = await ports.store.transactionAt(asked.lane, asked.exactNonce);
  if (found === null || isAnothers(found.owner, asked.owner)) return fate;
  const { txId, lane, requestId, nonce, state, payload } = found;
  if (fingerprint(payload) !== asked.fingerprint) return fate;
  return { outcome: "existing", txId, lane, requestId, nonce, state };
}

/** Also of an attempt that another has replaced: who waits for its hash learns its nonce, and finds the other by that. */
async function signedAs(
  { store, codec }: JsonRpcPorts,
  chainId: number,
  txHash: SignedAttemptHash,
): Promise<SignedView | null> {
  const [found] = await store.transactions({ chainId, txHash, order: "newest", limit: 1 });
  const attempt = found?.attempts.find((each) => each.txHash === txHash);
  if (found === undefined || attempt === undefined || !hasBytes(attempt)) return null;
  const [bytes] = await store.loadRawTransactions([{ txId: found.txId, ordinal: attempt.ordinal }]);
  if (bytes === undefined) return null;
  return { lane: found.lane, transaction: await codec.transactionObject(bytes) };
}

type SignedAttemptHash = NonNullable<AttemptRecord["txHash"]>;

function hasBytes({ kind, foreign, nodeSigned }: AttemptRecord): boolean {
  return kind !== "external" && foreign !== true && nodeSigned !== true;
}
