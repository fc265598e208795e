/**
 * Implements QueryStore on PostgreSQL: reads for callers and operators. Pages are found as ids first, then read by key.
 */
import { permitted } from "../../../domain/keys/principal.ts";
import type { Address } from "../../../domain/lane.ts";
import { reservationAt } from "../../../domain/ledger/index.ts";
import { within } from "../../../domain/policy/use.ts";
import type {
  Census,
  HistoryRecord,
  LaneRecord,
  QueryStore,
  SignatureFilter,
  TransactionRecord,
} from "../../../ports/query-store.ts";
import type { PolicyBook } from "../commit/policies.ts";
import * as decode from "../commit/rows.ts";
import { messageUseOf, signatureOf } from "../commit/signature-rows.ts";
import { laneOf, withLane, withOwner } from "../rows/columns.ts";
import { OPTIONAL, withoutNulls, withPayload } from "../rows/transaction-fields.ts";
import { ask, type Reading } from "../session/connections.ts";
import { findActionKeys } from "../statements/action-key.ts";
import { readAttempts, readFirstHashes } from "../statements/attempt.ts";
import { readCensus } from "../statements/census.ts";
import { readConfirmations } from "../statements/confirmation.ts";
import { readCosts } from "../statements/cost.ts";
import { readCompletions, readFeed } from "../statements/feed.ts";
import { type HistoryRow, readHistory } from "../statements/history.ts";
import { type HoleRow, listHoles } from "../statements/hole.ts";
import { type IntakeRecordRow, readIntakeRecords } from "../statements/intake.ts";
import { type LaneListRow, listLanes, readLaneDecisions } from "../statements/lane.ts";
import { readLeft } from "../statements/left-intent.ts";
import * as used from "../statements/policy.ts";
import { readPoolOf } from "../statements/pool-choice.ts";
import { readReceipts } from "../statements/receipt.ts";
import { readReservation } from "../statements/reservation.ts";
import { ping } from "../statements/session.ts";
import {
  listSignatures,
  listSignaturesInState,
  listSignaturesOfDomain,
  listSignaturesOfKey,
  listSignaturesOfSigners,
  readMessageUse,
  readSignature,
} from "../statements/signature.ts";
import { findByNonce, type RecordRow, readRecords } from "../statements/transaction.ts";
import { preferOrder } from "../statements/transaction-page.ts";
import { isNarrow, matches, pageOf } from "./pages.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** An id above all others. */
const LAST = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/**
 * Bounds that include every signer: a signer is `0x` and lower-case hex, so it is above the first and below the second.
 */
const BEFORE_ALL = { signer: "", chainId: 0 };
const BEYOND_ALL = "1";

export function queriesFrom(
  reading: Reading,
  policy: PolicyBook | null = null,
): Omit<QueryStore, "transactionByRequest"> {
  const transaction: QueryStore["transaction"] = async (txId) => {
    if (!UUID.test(txId)) return null;
    const { records, aliases } = await recordsOf(reading, [txId]);
    const aliased = aliases.get(txId.toLowerCase());
    return aliased === undefined ? (records.get(txId.toLowerCase()) ?? null) : transaction(aliased);
  };
  const history: QueryStore["history"] = async (txId) => {
    if (!UUID.test(txId)) return [];
    const [rows, [intake]] = await reading.read(readHistory(txId), readIntakeRecords([txId]));
    if (rows.length > 0 || intake === undefined) return rows.map(historyRecord);
    return intake.aliasOf === null
      ? [{ ...decode.ACCEPTED, firstAt: intake.createdAt, lastAt: intake.createdAt }]
      : history(intake.aliasOf);
  };
  return {
    ...policyReads(reading, policy),
    ...laneReads(reading),
    transaction,
    history,
    async poolOf(txId) {
      const [row] = UUID.test(txId) ? await ask(reading, readPoolOf(txId)) : [];
      return row?.pool ?? null;
    },
    async transactionAt({ chainId, signer }, nonce) {
      const [found] = await ask(reading, findByNonce(chainId, signer, nonce));
      return found === undefined ? null : transaction(found.txId);
    },
    firstHashes: (txIds) => firstHashesOf(reading, txIds),
    async transactions(filter) {
      const ids = await pageOf(reading, filter);
      if (ids.length === 0) return [];
      const { records } = await recordsOf(reading, ids);
      const page = ids.flatMap((id) => records.get(id) ?? []);
      return isNarrow(filter) ? page.filter((record) => matches(record, filter)).slice(0, filter.limit) : page;
    },
    async costs(filter) {
      const ids = await pageOf(reading, { ...filter, nonceless: false });
      const items = await costsOf(reading, ids);
      return { items, next: ids.length < filter.limit ? null : (ids.at(-1) ?? null) };
    },
    costsOf: (txIds) => costsOf(reading, txIds),
    confirmations: (chainId, aboveBlock, limit) => ask(reading, readConfirmations(chainId, aboveBlock + 1, limit)),
    async feed(after, limit) {
      const [counters, items] = await reading.read(readFeed(), readCompletions(after, limit));
      return { ...decode.only(counters), items: items.map(withLane) };
    },
    async signature(signatureId) {
      const [row] = UUID.test(signatureId) ? await ask(reading, readSignature(signatureId)) : [];
      return row === undefined ? null : signatureOf(row);
    },
    signatures: (filter) => signatures(reading, filter),
    async reservation(reservationId) {
      const [row] = UUID.test(reservationId) ? await ask(reading, readReservation(reservationId)) : [];
      return row === undefined ? null : reservationAt(decode.reservationOf(row), row.askedAt);
    },
    census: () => census(reading),
    ping: async () => void (await ask(reading, ping())),
  };
}

async function signatures(reading: Reading, filter: SignatureFilter) {
  const { signer, chainId, within: limits, after = LAST, owner = null, state = null, domain = null, limit } = filter;
  const signers = permitted(signer, limits?.signers);
  const chains = permitted(chainId, limits?.chains);
  const page = signaturePage(filter, signers !== null);
  return (await ask(reading, page(after, signers, chains, owner, state, limit, domain))).map(signatureOf);
}

/** Nearly all signatures are SIGNED: another state is the best filter, and SIGNED the last one. */
function signaturePage({ owner, state, domain }: SignatureFilter, isOfSigners: boolean) {
  if (state !== undefined && state !== "SIGNED") return listSignaturesInState;
  if (owner !== undefined) return listSignaturesOfKey;
  if (domain !== undefined) return listSignaturesOfDomain;
  if (isOfSigners) return listSignaturesOfSigners;
  return state === undefined ? listSignatures : listSignaturesInState;
}

async function costsOf(reading: Reading, txIds: readonly string[]) {
  const rows = txIds.length === 0 ? [] : await ask(reading, readCosts(txIds));
  return rows.map((row) => withLane(withoutNulls(row, "replacement")));
}

async function census(reading: Reading): Promise<Census> {
  const { liveConfirmed, liveFailed, oldestPendingAgeMs, ...row } = decode.only(await ask(reading, readCensus()));
  const { unownedLanes, suspendedLanes, ...states } = row;
  return {
    states,
    watched: { CONFIRMED: liveConfirmed, FAILED_FINAL: liveFailed },
    oldestPendingAgeMs: oldestPendingAgeMs === null ? null : Math.max(0, oldestPendingAgeMs),
    unownedLanes,
    suspendedLanes,
  };
}

/**
 * Reads the hashes of transactions' first attempts. An id without a transaction's row may be an alias; then the hash of
 * the actual transaction is returned.
 */
async function firstHashesOf(reading: Reading, txIds: readonly string[]) {
  const found = await ask(reading, readFirstHashes(txIds));
  const known = new Set(found.map(({ txId }) => txId));
  const others = txIds.filter((txId) => !known.has(txId));
  const names = others.length === 0 ? [] : await ask(reading, readLeft(others));
  const aliases = names.flatMap(({ txId, aliasOf }) => (aliasOf === null ? [] : [{ txId, aliasOf }]));
  if (aliases.length === 0) return found;
  const named = await ask(reading, readFirstHashes(aliases.map(({ aliasOf }) => aliasOf)));
  const byId = new Map(named.map((row) => [row.txId, row]));
  return [
    ...found,
    ...aliases.flatMap(({ txId, aliasOf }) => {
      const row = byId.get(aliasOf);
      return row === undefined ? [] : [{ ...row, txId }];
    }),
  ];
}

function laneReads(reading: Reading): Pick<QueryStore, "laneDecisions" | "carriedOut" | "lanes" | "lanesAfter"> {
  return {
    laneDecisions: ({ chainId, signer }, limit) => ask(reading, readLaneDecisions(signer, chainId, limit)),
    async carriedOut(lane, actionKey) {
      const [row] = await ask(reading, findActionKeys([{ ...actionKey, ...lane }]));
      return row?.fingerprint ?? null;
    },
    async lanes(signer) {
      const all = listLanes(signer, 0, signer, null, null, null, null, null);
      const [, rows, holes] = await reading.read(preferOrder(), all, listHoles(signer, signer));
      return rows.map((row) => laneRecord(row, holes));
    },
    async lanesAfter(after, limit, { chainId, owner, needsAttention, within: limits } = {}) {
      const { signer, chainId: chain } = after ?? BEFORE_ALL;
      const [chains, signers] = [permitted(chainId, limits?.chains), permitted<Address>(undefined, limits?.signers)];
      const page = listLanes(signer, chain, BEYOND_ALL, limit, chains, owner, needsAttention, signers);
      const [, rows] = await reading.read(preferOrder(), page);
      const [first, last] = [rows[0], rows.at(-1)];
      if (first === undefined || last === undefined) return [];
      const holes = await ask(reading, listHoles(first.signer, last.signer));
      return rows.map((row) => laneRecord(row, holes));
    },
  };
}

function policyReads(
  reading: Reading,
  policy: PolicyBook | null,
): Pick<QueryStore, "policyUse" | "messageUse" | "allPolicyUse"> {
  return {
    async policyUse(lane, { txId, owner }) {
      const txIds = txId === undefined ? [] : [txId];
      const [[row], clocks, charges, [key]] = await reading.read(
        used.readLaneUse([lane.signer], [lane.chainId]),
        used.readPolicyClock(txIds),
        used.readCharges(txIds),
        used.readKeyUse(owner === undefined ? [] : [owner], txIds, [lane.chainId]),
      );
      const { at, stamp, owner: itsOwner } = decode.only(clocks);
      await policy?.follow(stamp);
      return {
        lane,
        at,
        owner: owner ?? itsOwner,
        signer: decode.useOf(row),
        key: decode.useOf(key),
        charges: charges.map(decode.chargeOf),
      };
    },
    async messageUse(lane) {
      const [clocks, rows] = await reading.read(
        used.readPolicyClock([]),
        readMessageUse([lane.signer], [lane.chainId]),
      );
      const { at, stamp } = decode.only(clocks);
      await policy?.follow(stamp);
      return { at, used: new Map(rows.map((row) => [row.rule, messageUseOf(row)])) };
    },
    async allPolicyUse() {
      const [clocks, lanes, keys] = await reading.read(used.readPolicyClock([]), used.listLaneUse(), used.listKeyUse());
      const { at } = decode.only(clocks);
      return {
        at,
        signers: lanes.map((row) => ({ lane: laneOf(row), use: within(decode.useOf(row), at) })),
        keys: keys.map((row) => ({ chainId: row.chainId, owner: row.owner, use: within(decode.useOf(row), at) })),
      };
    },
  };
}

/** Reads the rows of these ids: transactions, waiting intake rows, and aliases. */
async function recordsOf(reading: Reading, ids: readonly string[]) {
  const [rows, intake, attempts, receipts] = await reading.read(
    readRecords(ids),
    readIntakeRecords(ids),
    readAttempts(ids),
    readReceipts(ids),
  );
  const attemptsOf = decode.groupByTransaction(attempts);
  const receiptOf = decode.receiptsOf(receipts);
  const records = new Map<string, TransactionRecord>();
  const aliases = new Map<string, string>();
  for (const waiting of intake) {
    const { aliasOf, intakeId, awaits, expiresAt, ...row } = waiting;
    if (aliasOf !== null) aliases.set(row.txId, aliasOf);
    else
      records.set(row.txId, {
        ...transactionRecord(row),
        attempts: [],
        receipt: null,
        intakeId,
        ...approvalOf(waiting),
      });
  }
  for (const row of rows) {
    const attempts = (attemptsOf.get(row.txId) ?? []).map(decode.attemptRecord);
    records.set(row.txId, { ...transactionRecord(row), attempts, receipt: receiptOf.get(row.txId) ?? null });
  }
  return { records, aliases };
}

function approvalOf({ intakeId, awaits, expiresAt, subState }: IntakeRecordRow) {
  if (awaits === null || expiresAt === null) return {};
  return subState === null ? { approved: { intakeId } } : { awaiting: { intakeId, rule: awaits, expiresAt } };
}

function transactionRecord(row: RecordRow): Omit<TransactionRecord, "attempts" | "receipt"> {
  const { gasLimit: gas, ...record } = withPayload(withLane(withoutNulls(row, ...OPTIONAL, "heldSince", "expiredAt")));
  return { ...record, gas };
}

function historyRecord({ actor, audit, ...row }: HistoryRow): HistoryRecord {
  return actor === null ? row : { ...row, decision: { actor, audit } };
}

function laneRecord({ headOfLine: head, ...row }: LaneListRow, holes: readonly HoleRow[]): LaneRecord {
  return {
    ...withOwner(withLane(row)),
    holes: holes.filter((hole) => hole.signer === row.signer && hole.chainId === row.chainId).map(decode.holeOf),
    headOfLine: head && { ...head, createdAt: new Date(head.createdAt) },
  };
}
