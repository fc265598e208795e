/**
 * Functions for Ethereum JSON-RPC that the API does not have: the hash of a new transaction, a transaction's bytes, and
 * requests passed on to the chain.
 */
import { unavailable } from "../../domain/errors.ts";
import type { Address, Hash, Hex } from "../../domain/lane.ts";
import { ChainUnavailable, type PassedAnswer } from "../../ports/chain.ts";
import type { AttemptRecord } from "../../ports/query-store.ts";
import { askedFor } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { firstHashes } from "../queries/first-hashes.ts";

export interface JsonRpcPorts extends Pick<CallPorts, "clock" | "codec" | "entropy" | "store" | "chains"> {
  /**
   * True if no kill applies to this signer. False also if this node's lease is not valid now, or it has not read the
   * kills yet, because it could have missed a kill.
   */
  readonly isFree: (signer: Address) => boolean;
}

export function createJsonRpc(ports: JsonRpcPorts) {
  return {
    /** Generates transaction ids for `createNamed`, whose creates get their ids in advance. */
    newIds: async (count: number) => Array.from({ length: count }, () => ports.entropy.uuid()),
    /**
     * The hash of the transaction's first attempt, as soon as that attempt is stored; null if it is not stored in time,
     * or never.
     */
    firstHash: firstHashes(ports),
    /**
     * The bytes of one of our attempts, even if another attempt has replaced it, in JSON-RPC's form of a pending
     * transaction; null if the hash is unknown or the attempt's bytes are not stored.
     */
    signedAs: (chainId: number, txHash: Hash) => signedAs(ports, chainId, txHash),
    /** Passes a request on to one of the chain's endpoints. UNKNOWN_CHAIN if this node does not serve the chain. */
    askChain: async (chainId: number, method: string, params: unknown): Promise<PassedAnswer> => {
      return answered(askedFor(ports.chains, chainId).chain.passOn(method, params));
    },
    /**
     * Sends a transaction of a signer that is not managed here to one of the chain's endpoints. UNAVAILABLE, with
     * nothing sent, during a kill of all signers or of this one, or if this node cannot check for kills.
     */
    passSigned: async (chainId: number, rawTransaction: Hex): Promise<PassedAnswer> => {
      const { chain } = askedFor(ports.chains, chainId);
      const { signer } = await ports.codec.decodeTransaction(rawTransaction);
      const answer = await answered(chain.passSigned(rawTransaction, () => ports.isFree(signer)));
      if ("kind" in answer) return answer;
      throw unavailable("nothing was sent: this signer or all signers are killed, or this node cannot check that");
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

/**
 * Also finds an attempt that another has replaced. A caller that waits for the old hash then sees the transaction's
 * nonce, and can find the replacement by that nonce.
 */
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
