/** Requests of Ethereum's JSON-RPC beside the API: a hash soon, a transaction's bytes, and the chain itself. */
import { unavailable } from "../../domain/errors.ts";
import type { Address, Hash, Hex } from "../../domain/lane.ts";
import { ChainUnavailable, type PassedAnswer } from "../../ports/chain.ts";
import type { AttemptRecord } from "../../ports/query-store.ts";
import { askedFor } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { firstHashes } from "../queries/first-hashes.ts";

export interface JsonRpcPorts extends Pick<CallPorts, "clock" | "codec" | "entropy" | "store" | "chains"> {
  /** No order to stop concerns this signer, and this node would know of one: a peer or the database reaches it. */
  readonly isFree: (signer: Address) => boolean;
}

export function createJsonRpc(ports: JsonRpcPorts) {
  return {
    /** For `createNamed`. */
    newIds: async (count: number) => Array.from({ length: count }, () => ports.entropy.uuid()),
    /** The hash of its first attempt, once that is stored. Null: not in time, or never. */
    firstHash: firstHashes(ports),
    /** The bytes of an attempt of ours, an old one too, as JSON-RPC shows a transaction that waits; null: none that we know. */
    signedAs: (chainId: number, txHash: Hash) => signedAs(ports, chainId, txHash),
    /** Answer of one of the chain's endpoints. UNKNOWN_CHAIN if this node has none. */
    askChain: async (chainId: number, method: string, params: unknown): Promise<PassedAnswer> => {
      return answered(askedFor(ports.chains, chainId).chain.passOn(method, params));
    },
    /**
     * Passes a foreign signed transaction on to the chain's endpoints. UNAVAILABLE, with nothing sent, during a kill of
     * everything.
     */
    passSigned: async (chainId: number, rawTransaction: Hex): Promise<PassedAnswer> => {
      const { chain } = askedFor(ports.chains, chainId);
      const { signer } = await ports.codec.decodeTransaction(rawTransaction);
      const answer = await answered(chain.passSigned(rawTransaction, () => ports.isFree(signer)));
      if ("kind" in answer) return answer;
      throw unavailable("everything, or this signer, is stopped, or this node cannot tell; nothing was sent");
    },
  };
}

async function answered<T>(asking: Promise<T>) {
  try {
    return await asking;
  } catch (error) {
    throw error instanceof ChainUnavailable ? unavailable("the chain does not answer", error) : error;
  }
}

/** Also of an attempt that another has replaced: who waits for its hash learns its nonce, and finds the other by that. */
async function signedAs({ store, codec }: JsonRpcPorts, chainId: number, txHash: Hash) {
  const [found] = await store.transactions({ chainId, txHash, order: "newest", limit: 1 });
  const attempt = found?.attempts.find((each) => each.txHash === txHash);
  if (found === undefined || attempt === undefined || !hasBytes(attempt)) return null;
  const [bytes] = await store.loadRawTransactions([{ txId: found.txId, ordinal: attempt.ordinal }]);
  if (bytes === undefined) return null;
  return { lane: found.lane, transaction: await codec.transactionObject(bytes) };
}

function hasBytes({ kind, foreign, nodeSigned }: AttemptRecord) {
  return kind !== "external" && foreign !== true && nodeSigned !== true;
}
