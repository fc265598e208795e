/**
 * JSON-RPC read methods. Some are answered from the lane, which has newer data than the chain's nodes; the rest is
 * forwarded.
 */

import { UUID } from "../../../application/requests/fields.ts";
import { READ } from "../../../contract/calls/call.ts";
import { READ_METHODS } from "../../../domain/chain/rpc-methods.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { isWithin } from "../../../domain/keys/principal.ts";
import type { Hash } from "../../../domain/lane.ts";
import { authorise } from "../exchange/auth.ts";
import { transactionView } from "../exchange/views.ts";
import { NO_SUCH_METHOD, readFailure, UNAVAILABLE } from "./error-codes.ts";
import { refuseWideFilter } from "./log-filters.ts";
import { HASH, listOf, RpcFailure, type RpcItem, type RpcOutcome, result } from "./packet.ts";
import { inTime, orNull, type RpcContext } from "./rpc-context.ts";
import { whyNever } from "./signatures.ts";

type Read = (context: RpcContext, item: RpcItem) => Promise<RpcOutcome>;

const ANSWERED: Readonly<Record<string, Read>> = {
  eth_chainId: async (context) => result(quantity(servedChain(context))),
  net_version: async (context) => result(String(servedChain(context))),
  eth_accounts: accounts,
  eth_requestAccounts: accounts,
  eth_getTransactionCount: transactionCount,
  eth_getTransactionByHash: transactionByHash,
  eth_getLogs: logs,
  eth_newFilter: logs,
  fencepost_getTransaction: ownTransaction,
};

/** Read methods that an API key with only the scope `submit` needs before sending. */
const BEFORE_SENDING = new Set(["eth_chainId", "net_version", "eth_accounts", "eth_requestAccounts"]);

export async function answerRead(context: RpcContext, item: RpcItem): Promise<RpcOutcome> {
  try {
    authorise(context.principal, BEFORE_SENDING.has(item.method) ? { scope: "read", or: "submit" } : READ);
    const answer = (Object.hasOwn(ANSWERED, item.method) ? ANSWERED[item.method] : undefined) ?? pass;
    return await inTime(context, answer(context, item), () => LATE);
  } catch (error) {
    if (error instanceof FencepostError) context.onRefused(error);
    return readFailure(error, context.mask);
  }
}

const LATE = new RpcFailure(UNAVAILABLE, "no answer in time: repeat it, or request less at once");

async function pass(context: RpcContext, { method, params }: RpcItem) {
  if (!READ_METHODS.has(method) && !context.methods.includes(method)) return noSuchMethod(method);
  return (await context.readChain(context, method, params)).outcome;
}

async function logs(context: RpcContext, item: RpcItem) {
  await refuseWideFilter(context, item.params);
  return pass(context, item);
}

/** Error for an unknown method, with geth's text: clients with a fallback look for it. */
function noSuchMethod(method: string) {
  const known = `the method ${method.slice(0, 100)} does not exist/is not available`;
  return new RpcFailure(
    NO_SUCH_METHOD,
    `${known}: ${whyNever(method) ?? "FENCEPOST_RPC_METHODS adds forwarded reads"}`,
  );
}

function servedChain({ chainId, servesChain }: RpcContext) {
  if (servesChain) return chainId;
  throw new FencepostError("UNKNOWN_CHAIN", `chain ${chainId} is not configured on this node`);
}

const PAGE = 500;
/** Largest number of accounts returned; more than any client shows. */
const MOST_ACCOUNTS = 10_000;

async function accounts({ api, chainId, checksum, principal }: RpcContext) {
  const found: string[] = [];
  for (let after: string | null | undefined; after !== null && found.length < MOST_ACCOUNTS; ) {
    const page = await api.signers({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    const usable = page.items.filter(({ lane }) => lane.chainId === chainId && isWithin(principal, lane));
    found.push(...usable.map(({ address }) => checksum(address)));
    after = page.next;
  }
  return result(found);
}

/**
 * Answers `eth_getTransactionCount`. For `pending` of a signer it is the lane's next nonce, which includes transactions
 * that are in no node's pool yet, or the chain's count if that is higher. All else is answered by the chain.
 */
async function transactionCount(context: RpcContext, item: RpcItem) {
  const [address, tag] = listOf(item.params);
  const cursor = tag === "pending" && typeof address === "string" ? await cursorOf(context, address) : null;
  if (cursor === null) return pass(context, item);
  const latest = context.readChain(context, item.method, [address, "latest"]);
  if (cursor === "new") return (await latest).outcome;
  const mined = (await latest.catch(() => null))?.answer;
  const count = mined?.kind === "result" ? Number(mined.result) : Number.NaN;
  return result(quantity(Math.max(cursor, Number.isSafeInteger(count) ? count : 0)));
}

/**
 * Next nonce of a signer. Null if the address is not a signer on this chain that the API key may see; "new" if its lane
 * has no nonce yet.
 */
async function cursorOf({ api, chainId }: RpcContext, address: string) {
  const lanes = await orNull(api.signer(address), "UNKNOWN_SIGNER", "FORBIDDEN", "INVALID_REQUEST");
  const own = lanes?.find(({ lane }) => lane.chainId === chainId);
  return own === undefined ? null : (own.cursor ?? "new");
}

/**
 * Answers `eth_getTransactionByHash`. An attempt that no node has yet is returned as pending, because ethers polls
 * forever until it finds its transaction.
 */
async function transactionByHash(context: RpcContext, item: RpcItem) {
  const hash = parseHash(listOf(item.params)[0]);
  const { api, chainId } = context;
  const shown = await context.readChain(context, item.method, [hash]).catch((error: unknown) => error as Error);
  if (!(shown instanceof Error) && shown.answer.kind === "result" && shown.answer.result !== null) return shown.outcome;
  const own = await api.signedAs(chainId, hash);
  if (own !== null) return result(own.transaction);
  if (shown instanceof Error) throw shown;
  return shown.outcome;
}

/** Finds a transaction by the hash of any attempt, or by the id that the response to a send contained. */
async function ownTransaction(context: RpcContext, { params }: RpcItem) {
  const { api, checksum, writeTransaction } = context;
  const [name] = listOf(params);
  if (typeof name !== "string") throw invalid("params.0", "must be a transaction's hash, or its Fencepost id");
  const view = await found(context, name);
  if (view === null) return result(null);
  const full = await api.transaction(view.txId, ["history"]);
  return { json: writeTransaction(transactionView(full, checksum)) };
}

async function found({ api, chainId }: RpcContext, name: string) {
  if (UUID.test(name)) return orNull(api.transaction(name), "NOT_FOUND");
  return (await api.transactions({ chainId, txHash: parseHash(name), limit: 1 })).items[0] ?? null;
}

function parseHash(value: unknown) {
  if (typeof value === "string" && HASH.test(value)) return value.toLowerCase() as Hash;
  throw invalid("params.0", "must be a hash of 32 bytes");
}

function quantity(value: number) {
  return `0x${value.toString(16)}`;
}
