/**
 * Signers and their lanes, by signer and chain. Of the chain they show what a loop of this node has last been told; only
 * where one signer is asked for with `fresh` is it asked anew.
 */
import { defined } from "../../domain/defined.ts";
import { FencepostError, invalid } from "../../domain/errors.ts";
import type { Address, Lane } from "../../domain/lane.ts";
import { laneKey } from "../../domain/lane.ts";
import type { LaneRecord } from "../../ports/query-store.ts";
import type { SignersPage, SignersQuery, SignerView } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { parseSigner } from "../requests/normalise.ts";
import { windowOf } from "./lane-window.ts";
import { silent } from "./silent.ts";

/** What the chain says of an account; null: this node has not been told. */
interface Account {
  readonly latest: number | null;
  readonly pending: number | null;
  readonly balance: bigint | null;
}

const DEFAULT_PAGE = 100;
const MOST_DECISIONS = 20;
const CURSOR = /^(0x[0-9a-f]{40}):([1-9][0-9]{0,15})$/;

/** Every configured signer on every chain, used or not, and every lane the database knows beside them. */
export async function signers(ports: CallPorts, query: SignersQuery): Promise<SignersPage> {
  const { limit = DEFAULT_PAGE } = query;
  const after = query.after === undefined ? null : openCursor(query.after);
  const { chainId, owner, needs } = query;
  const filter = defined({ chainId, owner, needsAttention: needs === "attention" ? true : undefined });
  const known = await ports.store.lanesAfter(after, limit + 1, filter);
  const end = known.length > limit ? known.at(-1)?.lane : undefined;
  const isBetween = (lane: Lane) =>
    (after === null || compareKeys(lane, after) > 0) && (end === undefined || compareKeys(lane, end) < 0);
  // Nobody acts for a lane that was never used, and nothing can be wrong with it.
  const isAsked = (lane: Lane) =>
    owner === undefined && needs === undefined && (chainId === undefined || lane.chainId === chainId);
  const others = unusedLanes(ports, known).filter((lane) => isAsked(lane) && isBetween(lane));
  const records = [...known, ...others.map(unused)];
  records.sort((a, b) => compareKeys(a.lane, b.lane));
  const page = records.slice(0, limit);
  const last = page.at(-1);
  return {
    items: page.map((record) => viewOf(ports, record, lastTold(ports, record.lane))),
    next: records.length > limit && last !== undefined ? sealCursor(last.lane) : null,
  };
}

export async function signer(
  ports: CallPorts,
  name: string,
  { fresh = false }: { readonly fresh?: boolean } = {},
): Promise<readonly SignerView[]> {
  const address = parseSigner(ports.codec, name, "signer");
  const known = await ports.store.lanes(address);
  const isHeld = ports.signer.addresses().includes(address);
  if (!isHeld && known.length === 0) {
    throw new FencepostError("UNKNOWN_SIGNER", `no node holds the key of ${name}`);
  }
  const others = unusedLanes(ports, known).filter((lane) => lane.signer === address);
  return Promise.all(
    [...known, ...others.map(unused)].map(async (record) => {
      const account = fresh ? await askAnew(ports, record.lane) : lastTold(ports, record.lane);
      const decisions = await ports.store.laneDecisions(record.lane, MOST_DECISIONS);
      return { ...viewOf(ports, record, account), decisions };
    }),
  );
}

/** Of every configured signer on every chain, those that are not known. */
function unusedLanes({ chains, signer }: CallPorts, known: readonly LaneRecord[]): readonly Lane[] {
  const keys = new Set(known.map(({ lane }) => laneKey(lane)));
  const all = signer
    .addresses()
    .flatMap((address) => [...chains.keys()].map((chainId) => ({ chainId, signer: address })));
  return all.filter((lane) => !keys.has(laneKey(lane)));
}

function viewOf(ports: CallPorts, record: LaneRecord, { latest, pending, balance }: Account): SignerView {
  const { chainId, signer: address } = record.lane;
  const chainCounts = latest === null ? null : { latest, pending };
  const owned = ports.lanesOf(chainId).filter(({ lane }) => lane.signer === address);
  return {
    ...record,
    address,
    chainCounts,
    balance,
    signerAway: signerAwayOf(owned, address),
    window: windowIn(ports, owned),
  };
}

function windowIn({ chains, clock }: CallPorts, [lane]: readonly OwnedLane[]) {
  const configured = lane && chains.get(lane.lane.chainId)?.settings.inFlightWindow;
  return lane === undefined || configured === undefined ? null : windowOf(lane, configured, clock.monotonicMs());
}

/** Null: it signs, or another node acts for it and knows. */
export function signerAwayOf(lanes: readonly OwnedLane[], signer: Address): SignerView["signerAway"] {
  const pace = lanes.find(({ lane }) => lane.signer === signer)?.pace.signer;
  return pace?.kind === "away" ? { since: pace.since, reason: pace.reason } : null;
}

function lastTold({ chains }: CallPorts, { chainId, signer: address }: Lane): Account {
  const context = chains.get(chainId);
  const counts = context?.counts.lastTold(address) ?? { latest: null, pending: null };
  return { ...counts, balance: context?.knownBalances.get(address) ?? null };
}

async function askAnew({ chains }: CallPorts, { chainId, signer: address }: Lane): Promise<Account> {
  const context = chains.get(chainId);
  const [latest, pending, balance] = await Promise.all([
    silent(context?.counts.mined(address, { atMostMs: 0 })),
    silent(context?.counts.pending(address, { atMostMs: 0 })),
    silent(context?.askBalance(address)),
  ]);
  return { latest: latest?.count ?? null, pending: pending?.count ?? null, balance };
}

/** Not the order of locks: a signer's lanes stand together. */
function compareKeys(a: Lane, b: Lane) {
  if (a.signer === b.signer) return a.chainId - b.chainId;
  return a.signer < b.signer ? -1 : 1;
}

/** Opaque to callers, so that what a page is keyed by may change. */
function sealCursor({ signer: address, chainId }: Lane) {
  return Buffer.from(`${address}:${chainId}`).toString("base64url");
}

function openCursor(cursor: string): Lane {
  const [, address, chainId] = CURSOR.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (address === undefined) throw invalid("after", "is not a cursor of an earlier page");
  return { signer: address as Address, chainId: Number(chainId) };
}

function unused(lane: Lane): LaneRecord {
  return {
    lane,
    cursor: null,
    suspendedBy: null,
    owner: null,
    token: 0,
    acquiredAt: null,
    pending: 0,
    confirmed: 0,
    failed: 0,
    stuck: 0,
    reserved: 0,
    holes: [],
    oldestPendingAt: null,
    headOfLine: null,
  };
}
