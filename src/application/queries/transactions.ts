import { ageInWords } from "../../domain/cluster/retention.ts";
import { defined } from "../../domain/defined.ts";
import { FencepostError, invalid } from "../../domain/errors.ts";
import { worstCost } from "../../domain/fees/ceilings.ts";
import { ANYBODY, type Limits } from "../../domain/keys/principal.ts";
import { isSpent } from "../../domain/ledger/index.ts";
import { isSettled } from "../../domain/transaction/transitions.ts";
import type { OutcomeQuestion } from "../../ports/chain.ts";
import { ChainUnavailable, unlessSilent } from "../../ports/chain.ts";
import { within } from "../../ports/clock.ts";
import type { AskedOfPool } from "../../ports/lane-store.ts";
import type { ListFilter, TransactionRecord } from "../../ports/query-store.ts";
import type { ChainLook, Include, ListQuery, RequestQuery, TransactionView } from "../api.ts";
import { Answers } from "../chain/answers.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { resubmitEveryMs } from "../lane/tracked.ts";
import { given, parseHash, UUID } from "../requests/fields.ts";
import { parseChainId, parseInstant, parseRequestId, parseSigner } from "../requests/normalise.ts";
import type { AbiBook } from "./abis.ts";

export interface TransactionQueryPorts extends Pick<CallPorts, "codec" | "store" | "chains" | "retention"> {
  /** Reads logs and revert reasons from the chain; if absent, the chain is not called. */
  readonly look?: ReturnType<typeof chainLooks>;
  /** Puts calls, logs and errors into words; if absent, they have none. */
  readonly abiBook?: Pick<AbiBook, "calls" | "look">;
}

const DEFAULT_PAGE = 50;
const MOST_CONFIRMATIONS = 256;

export async function transaction(
  ports: TransactionQueryPorts,
  txId: string,
  include: readonly Include[] = [],
): Promise<TransactionView> {
  const record = UUID.test(txId) ? await ports.store.transaction(txId.toLowerCase()) : null;
  if (record === null) throw notFound(ports, `there is no transaction ${txId}`);
  return detailed(ports, record, include);
}

export async function transactionByRequest(
  ports: TransactionQueryPorts,
  query: RequestQuery,
  include: readonly Include[] = [],
): Promise<TransactionView> {
  const { pool } = query;
  if (pool !== undefined && query.signer !== undefined) throw invalid("pool", "cannot be combined with signer");
  const signer = pool === undefined ? parseSigner(ports.codec, query.signer, "signer") : null;
  const chainId = parseChainId([...ports.chains.keys()], query.chainId);
  const requestId = parseRequestId(query.requestId);
  if (requestId === null) throw invalid("requestId", "is required");
  const record =
    signer === null
      ? await ofPool(ports, { chainId, pool: pool ?? "", requestId })
      : await ports.store.transactionByRequest({ chainId, signer }, requestId);
  if (record === null) throw notFound(ports, `there is no transaction with request id ${requestId}`);
  return detailed(ports, record, include);
}

/** If a retention is configured, the transaction may have existed and been deleted: the error mentions this. */
export function notFound({ retention }: Pick<CallPorts, "retention">, detail: string): FencepostError {
  const kept =
    retention === undefined
      ? ""
      : `; those that were final more than ${ageInWords(retention.ageMs)} ago are kept no more`;
  return new FencepostError("NOT_FOUND", `${detail}${kept}`);
}

async function ofPool({ store }: TransactionQueryPorts, asked: AskedOfPool) {
  const [found] = await store.findPooled([asked]);
  return found === undefined || isSpent(found) ? null : store.transaction(found.txId);
}

export async function transactions(
  ports: TransactionQueryPorts,
  query: ListQuery,
  limits: Limits = ANYBODY,
): Promise<{ readonly items: readonly TransactionView[]; readonly next: string | null }> {
  const { chainId, state, signer, txHash, after, order = "newest", limit = DEFAULT_PAGE } = query;
  const filter: ListFilter = defined({
    order,
    limit: limit + 1,
    within: limits,
    chainId,
    state,
    requestId: parseRequestId(query.requestId) ?? undefined,
    signer: given(signer, (value) => parseSigner(ports.codec, value, "signer")),
    txHash: given(txHash, (value) => parseHash(value, "txHash")),
    ...createdIn(query),
    after: given(after, openCursor),
  });
  const records = await ports.store.transactions(filter);
  const page = records.slice(0, limit);
  const last = page.at(-1);
  const next = records.length > limit && last !== undefined ? sealCursor(last.txId) : null;
  const inWords = await ports.abiBook?.calls();
  return { items: page.map((record) => view(ports, record, inWords)), next };
}

/** Range of creation times; an empty range is a mistake of the caller. */
function createdIn({ createdAfter, createdBefore }: Pick<ListQuery, "createdAfter" | "createdBefore">) {
  const range = {
    createdAfter: given(createdAfter, (value) => parseInstant(value, "createdAfter")),
    createdBefore: given(createdBefore, (value) => parseInstant(value, "createdBefore")),
  };
  if (
    range.createdAfter !== undefined &&
    range.createdBefore !== undefined &&
    range.createdBefore <= range.createdAfter
  )
    throw invalid("createdBefore", "must be after createdAfter");
  return range;
}

async function detailed(
  ports: TransactionQueryPorts,
  record: TransactionRecord,
  include: readonly Include[],
): Promise<TransactionView> {
  const { txId, lane, receipt } = record;
  const above = () =>
    receipt === null ? [] : ports.store.confirmations(lane.chainId, receipt.blockNumber, MOST_CONFIRMATIONS);
  const history = include.includes("history") ? { history: await ports.store.history(txId) } : {};
  const confirmations = include.includes("confirmations") ? { confirmations: await above() } : {};
  const onChain = ports.look && include.includes("logs") ? { onChain: await lookAt(ports, record, ports.look) } : {};
  return { ...view(ports, record, await ports.abiBook?.calls()), ...history, ...confirmations, ...onChain };
}

async function lookAt(
  { abiBook }: TransactionQueryPorts,
  record: TransactionRecord,
  look: NonNullable<TransactionQueryPorts["look"]>,
) {
  const shown = await look(record);
  return abiBook === undefined ? shown : abiBook.look(shown, record);
}

type InWords = Awaited<ReturnType<AbiBook["calls"]>>;

function view(ports: TransactionQueryPorts, record: TransactionRecord, inWords?: InWords): TransactionView {
  const txHash = record.receipt?.txHash ?? record.attempts.at(-1)?.txHash ?? null;
  const decoded = inWords?.(record);
  const words = decoded === undefined ? {} : { decoded };
  return { ...record, txHash, nextResubmitAt: nextResubmitAt(ports, record), ...words, ...costOf(ports, record) };
}

/**
 * Maximum cost, shown to the approver. It is computed from the ceilings alone, so that a list does not call the chain.
 */
function costOf({ chains }: TransactionQueryPorts, { awaiting, lane, payload }: TransactionRecord) {
  const ceilings = awaiting && chains.get(lane.chainId)?.ceilings;
  return ceilings === undefined ? {} : { worstCost: worstCost(ceilings, payload) };
}

/** When the stored bytes will be resent, unless the transaction is mined or changed before. */
function nextResubmitAt(ports: TransactionQueryPorts, record: TransactionRecord): Date | null {
  const intervalMs = ports.chains.get(record.lane.chainId)?.settings.resubmitIntervalMs ?? null;
  const everyMs = resubmitEveryMs(intervalMs, record.state);
  const waits = record.receipt === null && !isSettled(record.state);
  if (!waits || everyMs === null || record.lastSubmittedAt === null) return null;
  return new Date(record.lastSubmittedAt.getTime() + everyMs);
}

/** Encodes the position of the next page. It is opaque to callers, so that its contents may change. */
export function sealCursor(txId: string) {
  return Buffer.from(txId.replaceAll("-", ""), "hex").toString("base64url");
}

export function openCursor(cursor: string) {
  const hex = Buffer.from(cursor, "base64url").toString("hex");
  const txId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  if (!UUID.test(txId)) throw invalid("after", "is not a cursor of an earlier page");
  return txId;
}

/**
 * Reads a transaction's logs and revert reason from the chain, to show them to a person. Only one endpoint is called,
 * with few requests at once, and the same request is sent at most every few seconds. So an open page, or a key that
 * calls in a loop, costs the endpoint next to nothing. The answer is not stored, and no decision uses it.
 */

const ANSWERED_WITHIN_MS = 5_000;
const KEPT_FOR_MS = 5_000;
const MOST_KEPT = 100;
const MOST_AT_ONCE = 4;

/** Reads logs and revert reasons from the chain. QUEUE_FULL if too many reads are under way. */
export function chainLooks({ clock, chains }: Pick<CallPorts, "clock" | "chains">) {
  const kept = new Answers<string, ChainLook>(clock, MOST_KEPT);
  let underWay = 0;
  const nothing = (kind: ChainLook["kind"]): ChainLook => {
    return { kind, askedAt: clock.now(), blockHash: null, logs: [], more: 0, revert: null };
  };
  const late = () => {
    throw new ChainUnavailable("the chain did not answer in time");
  };
  const ask = async (record: TransactionRecord, blockHash: string): Promise<ChainLook> => {
    const context = chains.get(record.lane.chainId);
    const question = questionOf(record);
    if (context === undefined || question === null) return nothing("silent");
    const asked = within(clock, context.chain.outcome(question), { ms: ANSWERED_WITHIN_MS, late });
    const outcome = await unlessSilent(asked, "silent" as const);
    if (outcome === "silent") return nothing(outcome);
    if (outcome === null) return nothing("unknown");
    if (outcome.blockHash !== blockHash) return nothing("differs");
    return { kind: "shown", askedAt: clock.now(), ...outcome };
  };
  return async (record: TransactionRecord): Promise<ChainLook> => {
    const { txId, receipt } = record;
    if (receipt === null) return nothing("unmined");
    return kept.about(`${txId} ${receipt.blockHash}`, KEPT_FOR_MS, async () => {
      if (underWay >= MOST_AT_ONCE) {
        const detail = "too many transactions are being looked up on the chain at once: repeat this in a moment";
        throw new FencepostError("QUEUE_FULL", detail, { retryAfterSeconds: 1 });
      }
      underWay++;
      try {
        return await ask(record, receipt.blockHash);
      } finally {
        underWay--;
      }
    });
  };
}

/** What to read from the chain. The call that reverted is known only if the mined payload is the caller's. */
function questionOf({ lane, payload, receipt, attempts, gas }: TransactionRecord): OutcomeQuestion | null {
  if (receipt === null) return null;
  const { txHash, blockNumber, status } = receipt;
  const mined = attempts.find((attempt) => attempt.txHash === txHash);
  const isCallers = mined?.foreign !== true && (mined?.kind === "initial" || mined?.kind === "reprice");
  if (status !== "reverted" || !isCallers || blockNumber === 0) return { txHash, replay: null };
  const { to, data, value } = payload;
  const call = { from: lane.signer, to, data, value, gas: mined.gas ?? gas ?? undefined };
  return { txHash, replay: { call, onBlock: blockNumber - 1 } };
}
