/**
 * Signers and their lanes, ordered by signer and chain. The chain's values are the latest that a loop of this node
 * read; only a request for one signer with `fresh` reads them anew.
 */
import { defined } from "../../domain/defined.ts";
import { FencepostError, invalid } from "../../domain/errors.ts";
import { ANYBODY, isWithin, type Limits } from "../../domain/keys/principal.ts";
import { type Address, type Lane, laneKey } from "../../domain/lane.ts";
import type { WindowLimit } from "../../domain/pace/lane-pace.ts";
import { signerAwaited } from "../../domain/pace/lane-pace.ts";
import type { LaneDecisionRecord, LaneRecord } from "../../ports/query-store.ts";
import type { SignersQuery } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { parseSigner } from "../requests/normalise.ts";
import type { NodeReports } from "./node-reports.ts";
import { silent } from "./silent.ts";

/** The chain's last known values of an account; null if there are none yet. */
interface Account extends ReturnType<ChainContext["counts"]["lastKnown"]> {
  readonly balance: bigint | null;
  readonly balanceAsOf: Date | null;
}

export type SignerPorts = CallPorts & { readonly reports: Pick<NodeReports, "unownedSince"> };

export type SignerView = ReturnType<typeof viewOf> & {
  /** Operators' decisions about the lane, newest first; only in the response for a single signer. */
  readonly decisions?: readonly LaneDecisionRecord[];
};

const DEFAULT_PAGE = 100;
const MOST_DECISIONS = 20;
const CURSOR = /^(0x[0-9a-f]{40}):([1-9][0-9]{0,15})$/;

/** Every configured signer on every chain, used or not, and all other lanes in the database. */
export async function signers(
  ports: SignerPorts,
  query: SignersQuery = {},
  limits: Limits = ANYBODY,
): Promise<{ readonly items: readonly SignerView[]; readonly next: string | null }> {
  const { limit = DEFAULT_PAGE, chainId, owner, needs } = query;
  const after = query.after === undefined ? null : openCursor(query.after);
  const filter = defined({ within: limits, chainId, owner, needsAttention: needs === "attention" ? true : undefined });
  const known = await ports.store.lanesAfter(after, limit + 1, filter);
  const end = known.length > limit ? known.at(-1)?.lane : undefined;
  const isBetween = (lane: Lane) =>
    (after === null || compareKeys(lane, after) > 0) && (end === undefined || compareKeys(lane, end) < 0);
  // A lane that was never used has no owner and no problem, so it does not match a filter by owner or by problems.
  const isAsked = (lane: Lane) =>
    owner === undefined && needs === undefined && (chainId === undefined || lane.chainId === chainId);
  const others = unusedLanes(ports, known).filter((lane) => isWithin(limits, lane) && isAsked(lane) && isBetween(lane));
  const records = [...known, ...others.map(unused)].sort((a, b) => compareKeys(a.lane, b.lane));
  const page = records.slice(0, limit);
  const last = page.at(-1);
  return {
    items: page.map((record) => viewOf(ports, record, lastKnown(ports, record.lane))),
    next: records.length > limit && last !== undefined ? sealCursor(last.lane) : null,
  };
}

export async function signer(
  ports: SignerPorts,
  name: string,
  { fresh = false }: { readonly fresh?: boolean } = {},
): Promise<readonly SignerView[]> {
  const address = parseSigner(ports.codec, name, "signer");
  const known = await ports.store.lanes(address);
  if (known.length === 0 && !ports.signer.addresses().includes(address)) {
    throw new FencepostError("UNKNOWN_SIGNER", `no node holds the key of ${name}`);
  }
  const others = unusedLanes(ports, known).filter((lane) => lane.signer === address);
  return Promise.all(
    [...known, ...others.map(unused)].map(async (record) => {
      const account = fresh ? await askAnew(ports, record.lane) : lastKnown(ports, record.lane);
      const decisions = await ports.store.laneDecisions(record.lane, MOST_DECISIONS);
      return { ...viewOf(ports, record, account), decisions };
    }),
  );
}

/** Lanes of configured signers that are not in the database yet. */
function unusedLanes({ chains, signer }: CallPorts, known: readonly LaneRecord[]): readonly Lane[] {
  const keys = new Set(known.map(({ lane }) => laneKey(lane)));
  const all = signer
    .addresses()
    .flatMap((address) => [...chains.keys()].map((chainId) => ({ chainId, signer: address })));
  return all.filter((lane) => !keys.has(laneKey(lane)));
}

function viewOf(ports: SignerPorts, record: LaneRecord, { latest, pending, asOf, balance, balanceAsOf }: Account) {
  const { chainId, signer: address } = record.lane;
  const owned = ports.lanesOf(chainId).filter(({ lane }) => lane.signer === address);
  return {
    ...record,
    address,
    name: ports.settings.signerNames?.get(address) ?? null,
    /**
     * The chain's transaction counts of the signer; null if the chain does not answer, or no loop of this node has read
     * them yet.
     */
    chainCounts: latest === null || asOf === null ? null : { latest, pending, asOf },
    balance,
    balanceAsOf,
    signerAway: signerAwayOf(owned, address),
    unowned: record.owner === null ? ports.reports.unownedSince(record.lane) : null,
    window: windowOf(ports, owned),
  };
}

/**
 * The lane's in-flight window: `configured` by the settings, `open` now (smaller if the chain's node refuses future
 * nonces), and `inFlight`, the number that is signed and not mined. Null if another node owns the lane.
 */
function windowOf({ chains, clock }: CallPorts, [lane]: readonly OwnedLane[]) {
  const configured = lane && chains.get(lane.lane.chainId)?.settings.inFlightWindow;
  if (lane === undefined || configured === undefined) return null;
  const nowMs = clock.monotonicMs();
  const open = lane.openWindow(configured, nowMs);
  const limitedBy = limitOf(lane, { open, isReduced: open < configured }, nowMs);
  return { configured, open, inFlight: lane.unmined.size, limitedBy };
}

/**
 * The first reason why the lane's next transaction is not signed; null if no transaction waits, or the next one is
 * being signed now.
 */
function limitOf(
  lane: OwnedLane,
  { open, isReduced }: { readonly open: number; readonly isReduced: boolean },
  nowMs: number,
): WindowLimit | null {
  const { backlog, pace } = lane;
  if (backlog.isEmpty) return null;
  if (lane.suspended) return "SUSPENDED";
  if (lane.held) return "CHAIN_UNSURE";
  if (signerAwaited(pace, nowMs) !== null) return "SIGNER_AWAY";
  const [first] = backlog.atHand;
  if (first === undefined) return null;
  if (first.held === true) return "HELD";
  if (lane.toSign(open, 1).length > 0) return null;
  return isReduced ? "NO_FUTURE_NONCES" : "FULL";
}

/** Why the signer does not sign, or what it signs instead; null if it does, or if another node owns its lanes. */
export function signerAwayOf(lanes: readonly OwnedLane[], signer: Address) {
  const pace = lanes.find(({ lane }) => lane.signer === signer)?.pace.signer;
  return pace?.kind === "away" ? { since: pace.since, reason: pace.reason, lies: pace.lies } : null;
}

function lastKnown({ chains }: CallPorts, { chainId, signer: address }: Lane): Account {
  const context = chains.get(chainId);
  if (context === undefined) return { latest: null, pending: null, asOf: null, balance: null, balanceAsOf: null };
  const { counts, knownBalances: balances } = context;
  const balance = balances.get(address) ?? null;
  return { ...counts.lastKnown(address), balance, balanceAsOf: balances.asOf(address) };
}

async function askAnew({ chains, clock }: CallPorts, { chainId, signer: address }: Lane): Promise<Account> {
  const context = chains.get(chainId);
  const [latest, pending, balance] = await Promise.all([
    silent(context?.counts.mined(address, { atMostMs: 0 })),
    silent(context?.counts.pending(address, { atMostMs: 0 })),
    silent(context?.askBalance(address)),
  ]);
  const asOf = clock.now();
  const balanceAsOf = balance === null ? null : asOf;
  return { latest: latest?.count ?? null, pending: pending?.count ?? null, asOf, balance, balanceAsOf };
}

/** Order of the list (not of locks): the lanes of a signer are together. */
function compareKeys(a: Lane, b: Lane) {
  if (a.signer === b.signer) return a.chainId - b.chainId;
  return a.signer < b.signer ? -1 : 1;
}

/** Encodes the position of the next page. It is opaque to callers, so that its contents may change. */
function sealCursor({ signer: address, chainId }: Lane) {
  return Buffer.from(`${address}:${chainId}`).toString("base64url");
}

function openCursor(cursor: string): Lane {
  const [, address, chainId] = CURSOR.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (address === undefined) throw invalid("after", "is not a cursor of an earlier page");
  return { signer: address as Address, chainId: Number(chainId) };
}

function unused(lane: Lane): LaneRecord {
  const nobody = { cursor: null, suspendedBy: null, owner: null, token: 0, acquiredAt: null };
  const nothing = { pending: 0, confirmed: 0, failed: 0, stuck: 0, reserved: 0, holes: [] };
  return { lane, ...nobody, ...nothing, oldestPendingAt: null, headOfLine: null };
}
