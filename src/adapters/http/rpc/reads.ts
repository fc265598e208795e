/** Methods that are answered here, because the lane knows what no node of the chain knows yet; and all that is passed on. */
import { FencepostError, invalid } from "../../../domain/errors.ts";
import type { Hash } from "../../../domain/lane.ts";
import { isWithin } from "../../../domain/principal.ts";
import { READ_METHODS } from "../../../domain/rpc-methods.ts";
import { within } from "../../../ports/clock.ts";
import { transactionView } from "../views.ts";
import { type Asking, leftMs, requireScope } from "./asking.ts";
import { NO_SUCH_METHOD, readFailure, UNAVAILABLE } from "./error-codes.ts";
import { refuseWideFilter } from "./log-filters.ts";
import { RpcFailure, type RpcItem, type RpcOutcome, result } from "./packet.ts";

type Read = (asking: Asking, item: RpcItem) => Promise<RpcOutcome>;

const ANSWERED: Readonly<Record<string, Read>> = {
  eth_chainId: async (asking) => result(quantity(servedChain(asking))),
  net_version: async (asking) => result(String(servedChain(asking))),
  eth_accounts: accounts,
  eth_requestAccounts: accounts,
  eth_getTransactionCount: transactionCount,
  eth_getTransactionByHash: transactionByHash,
  eth_getLogs: logs,
  eth_newFilter: logs,
  fencepost_getTransaction: ownTransaction,
};

/** What a key that only sends has to ask before it can. */
const BEFORE_SENDING = new Set(["eth_chainId", "net_version", "eth_accounts", "eth_requestAccounts"]);

export async function answerRead(asking: Asking, item: RpcItem): Promise<RpcOutcome> {
  const { mask, clock } = asking;
  try {
    if (BEFORE_SENDING.has(item.method)) requireScope(asking.principal, "read", "submit");
    else requireScope(asking.principal, "read");
    const answer = (Object.hasOwn(ANSWERED, item.method) ? ANSWERED[item.method] : undefined) ?? pass;
    return await within(clock, answer(asking, item), { ms: Math.max(0, leftMs(asking)), late: () => LATE });
  } catch (error) {
    if (error instanceof FencepostError) asking.onRefused(error);
    return readFailure(error, mask);
  }
}

const LATE = new RpcFailure(UNAVAILABLE, "no answer in time: ask again, or for less at once");

async function pass(asking: Asking, { method, params }: RpcItem): Promise<RpcOutcome> {
  if (!READ_METHODS.has(method) && !asking.methods.includes(method)) return noSuchMethod(method);
  return (await asking.questions.ask(asking, method, params)).outcome;
}

async function logs(asking: Asking, item: RpcItem): Promise<RpcOutcome> {
  await refuseWideFilter(asking, item.params);
  return pass(asking, item);
}

/** In geth's words: clients that know another way look for them. */
function noSuchMethod(method: string): RpcFailure {
  const known = `the method ${method.slice(0, 100)} does not exist/is not available`;
  return new RpcFailure(NO_SUCH_METHOD, `${known}: FENCEPOST_RPC_METHODS adds reads that are passed on`);
}

function servedChain({ chainId, servesChain }: Asking): number {
  if (servesChain) return chainId;
  throw new FencepostError("UNKNOWN_CHAIN", `chain ${chainId} is not configured here`);
}

const PAGE = 500;
/** More accounts than any client shows. */
const MOST_ACCOUNTS = 10_000;

async function accounts({ api, chainId, checksum, principal }: Asking): Promise<RpcOutcome> {
  const found: string[] = [];
  for (let after: string | null | undefined; after !== null && found.length < MOST_ACCOUNTS; ) {
    const page = await api.signers({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    const usable = page.items.filter(({ lane }) => lane.chainId === chainId && isWithin(principal, lane));
    found.push(...usable.map(({ address }) => checksum(address)));
    after = page.next;
  }
  return result(found);
}

/** `pending` is the lane's next nonce: what stands in no node's pool yet counts. Every other block is the chain's to tell. */
async function transactionCount(asking: Asking, item: RpcItem): Promise<RpcOutcome> {
  const [address, tag] = listOf(item.params);
  const cursor = tag === "pending" && typeof address === "string" ? await cursorOf(asking, address) : null;
  if (cursor === null) return pass(asking, item);
  const latest = asking.questions.ask(asking, item.method, [address, "latest"]);
  if (cursor === "new") return (await latest).outcome;
  const mined = (await latest.catch(() => null))?.answer;
  const count = mined?.kind === "result" ? Number(mined.result) : Number.NaN;
  return result(quantity(Math.max(cursor, Number.isSafeInteger(count) ? count : 0)));
}

/** Null: it is no signer of ours that this key may see. "new": its lane has given no nonce yet. */
async function cursorOf({ api, chainId }: Asking, address: string): Promise<number | "new" | null> {
  const lanes = await api.signer(address).catch((error: unknown) => {
    const isOthers = error instanceof FencepostError && OTHERS.has(error.code);
    if (isOthers) return [];
    throw error;
  });
  const own = lanes.find(({ lane }) => lane.chainId === chainId);
  return own === undefined ? null : (own.cursor ?? "new");
}

const OTHERS: ReadonlySet<FencepostError["code"]> = new Set(["UNKNOWN_SIGNER", "FORBIDDEN", "INVALID_REQUEST"]);

/** ethers asks for what it sent until it is shown, for ever: an attempt that no node has yet is shown as pending. */
async function transactionByHash(asking: Asking, item: RpcItem): Promise<RpcOutcome> {
  const hash = hashIn(item);
  const { api, chainId } = asking;
  const shown = await asking.questions.ask(asking, item.method, [hash]).catch((error: unknown) => error as Error);
  if (!(shown instanceof Error) && shown.answer.kind === "result" && shown.answer.result !== null) return shown.outcome;
  const own = await api.signedAs(chainId, hash);
  if (own !== null) return result(own.transaction);
  if (shown instanceof Error) throw shown;
  return shown.outcome;
}

/** By the hash of any attempt, or by the id that a send was answered with. */
async function ownTransaction(asking: Asking, { params }: RpcItem): Promise<RpcOutcome> {
  const { api, checksum, writeTransaction } = asking;
  const [name] = listOf(params);
  if (typeof name !== "string") throw invalid("params.0", "must be a transaction's hash, or its id here");
  const view = await found(asking, name);
  if (view === null) return result(null);
  const full = await api.transaction(view.txId, ["history"]);
  return { json: writeTransaction(transactionView(full, checksum)) };
}

async function found({ api, chainId }: Asking, name: string) {
  if (UUID.test(name)) {
    return api.transaction(name).catch((error: unknown) => {
      if (error instanceof FencepostError && error.code === "NOT_FOUND") return null;
      throw error;
    });
  }
  const hash = parseHash(name);
  return (await api.transactions({ chainId, txHash: hash, limit: 1 })).items[0] ?? null;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function hashIn({ params }: RpcItem): Hash {
  const [hash] = listOf(params);
  return parseHash(hash);
}

function parseHash(value: unknown): Hash {
  if (typeof value === "string" && /^0x[0-9a-f]{64}$/i.test(value)) return value.toLowerCase() as Hash;
  throw invalid("params.0", "must be a hash of 32 bytes");
}

function listOf(params: unknown): readonly unknown[] {
  return Array.isArray(params) ? params : [];
}

function quantity(value: number): string {
  return `0x${value.toString(16)}`;
}
