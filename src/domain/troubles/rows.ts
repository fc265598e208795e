/**
 * The attention list: troubles that need a person. It has one row for each cause, however many transactions wait
 * because of it.
 */

import type { UnconfirmedRefusal } from "../chain/unconfirmed-refusal.ts";
import type { Address } from "../lane.ts";
import type { RowRequest } from "./advice.ts";
import { rowOf, SEVERITIES, type Severity, type TroubleCode } from "./table.ts";

export interface Trouble {
  /** Id of the row. It stays the same while the same trouble lasts. */
  readonly id: string;
  readonly severity: Severity;
  readonly code: TroubleCode;
  /** The trouble, and how many transactions wait because of it, in one sentence. */
  readonly sentence: string;
  /** The earliest time at which any node saw the trouble. */
  readonly since: Date | null;
  /** Time at which the numbers in the row's sentence were read; absent if the sentence has no numbers. */
  readonly asOf?: Date;
  readonly chainId: number | null;
  readonly signer: Address | null;
  readonly txId: string | null;
  readonly nonce: number | null;
  readonly nodeId: string | null;
  /** URL of the endpoint, with secrets masked. */
  readonly endpoint: string | null;
  /** Name of the subscriber that the trouble is about. */
  readonly subscriber?: string;
  /** Id of the requested signature that the trouble is about. */
  readonly signatureId?: string;
  /** Number of transactions that wait because of the trouble. */
  readonly waiting: number;
  readonly actions: readonly RowRequest[];
  /** True if the trouble was a single event that is over: a person should know of it. */
  readonly over: boolean;
  /** Facts that only the lane's owner has. Other nodes need them to explain transactions. */
  readonly facts?: ReportedFacts;
  /** Time at which the node handed the row's lane over. Only in reports: the lane's next owner dates its row by it. */
  readonly leftMs?: number;
}

/** Facts as JSON: times in milliseconds, wei as digits. */
export interface ReportedFacts {
  readonly signerAway?: { readonly sinceMs: number; readonly reason: string; readonly lies: boolean };
  /** Why no node owns the row's lane. Every node finds this, not only one. */
  readonly unowned?: string;
  readonly doubted?: string;
  readonly refusal?: Pick<UnconfirmedRefusal, "txId" | "reason" | "firstBlock" | "waitsFor"> & {
    readonly sinceMs: number;
  };
  readonly balance?: string;
  readonly minedCount?: number;
}

/** Default values of a row of the attention list: no lane, transaction, node or endpoint is named. */
export const NOWHERE = {
  since: null,
  chainId: null,
  signer: null,
  txId: null,
  nonce: null,
  nodeId: null,
  endpoint: null,
  waiting: 0,
  actions: [],
  over: false,
} as const satisfies Partial<Trouble>;

type Given = Partial<Omit<Trouble, "code" | "severity">> & Pick<Trouble, "sentence">;

/** Creates a row of the attention list. `part` distinguishes rows that have the same code, chain and signer. */
export function trouble(code: TroubleCode, { id, ...given }: Given, part?: string | number): Trouble {
  const { chainId, signer } = given;
  const own = [code, chainId, signer, part].filter((each) => each !== undefined && each !== null).join(":");
  return { ...NOWHERE, ...given, code, severity: rowOf(code).severity ?? "WARNING", id: id ?? own };
}

/**
 * True if the row is about one transaction: then that transaction's explanation describes the trouble better. A row
 * about a nonce gap names a transaction, but is not about it.
 */
export function isOfTransaction({ id, txId }: Trouble): boolean {
  return txId !== null && id === `tx:${txId}`;
}

/**
 * Sorts rows: most severe first, then the one with most waiting transactions, then the oldest; rows that are equal in
 * all this by id.
 */
export function ranked(troubles: readonly Trouble[]): readonly Trouble[] {
  return [...troubles].sort(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
      b.waiting - a.waiting ||
      (a.since?.getTime() ?? 0) - (b.since?.getTime() ?? 0) ||
      (a.id < b.id ? -1 : 1),
  );
}

/**
 * Merges rows with the same id, because two nodes or two sources may report the same trouble. Keeps the more severe
 * row, with the earlier time.
 */
export function once(troubles: readonly Trouble[]): readonly Trouble[] {
  const byId = new Map<string, Trouble>();
  for (const each of ranked(troubles)) {
    const known = byId.get(each.id);
    byId.set(each.id, known === undefined ? each : { ...each, ...known, since: earlier(known.since, each.since) });
  }
  return [...byId.values()];
}

/**
 * Drops rows that are only consequences of another row, their cause, or repeat its code. The remaining row gets the
 * earliest `since` and the worst severity of rows with its own code. Unless it is about one transaction, its count is
 * at least the number of transactions that wait in the dropped rows.
 */
export function condensed(troubles: readonly Trouble[]): readonly Trouble[] {
  // Sort rows about single transactions last, the others by lowest nonce. The first of several rows with the same cause
  // is the one that is shown.
  const all = [...once(troubles)].sort(
    (a, b) => Number(isOfTransaction(a)) - Number(isOfTransaction(b)) || (comesBefore(a, b) ? -1 : 1),
  );
  const hiddenBy = new Map<Trouble, Trouble[]>();
  const shown = all.filter((each) => {
    const cause = all.find((other) => isHiddenBy(each, other));
    if (cause !== undefined) hiddenBy.set(cause, [...(hiddenBy.get(cause) ?? []), each]);
    return cause === undefined;
  });
  return ranked(shown.map((each) => withConsequences(each, hiddenBy.get(each) ?? [])));
}

function isHiddenBy(each: Trouble, cause: Trouble) {
  if (each === cause || each.over || cause.over) return false;
  if (each.code !== cause.code) return rowOf(cause.code).hides?.includes(each.code) === true && isInside(each, cause);
  if (!isOfTransaction(each) || rowOf(each.code).about === "transaction" || !isInside(each, cause)) return false;
  return !isOfTransaction(cause) || comesBefore(cause, each);
}

function comesBefore(a: Trouble, b: Trouble) {
  return a.nonce === b.nonce ? a.id < b.id : (a.nonce ?? -1) < (b.nonce ?? -1);
}

/**
 * True if the trouble is within what its possible cause is about: all signers or one, a node, a chain, a lane,
 * otherwise the same transaction.
 */
function isInside(each: Trouble, cause: Trouble) {
  const isOn = each.chainId === cause.chainId;
  switch (rowOf(cause.code).about) {
    case "everything":
      return cause.signer === null || cause.signer === each.signer;
    case "node":
      return each.nodeId === cause.nodeId;
    case "chain":
      return isOn;
    case "lane":
      return isOn && each.signer === cause.signer;
    default:
      return each.txId === cause.txId;
  }
}

function withConsequences(cause: Trouble, hidden: readonly Trouble[]): Trouble {
  if (hidden.length === 0) return cause;
  const same = hidden.filter(({ code }) => code === cause.code);
  const since = same.reduce<Date | null>((first, each) => earlier(first, each.since), cause.since);
  const byLane = new Map<string, number>();
  for (const { chainId, signer, waiting, txId } of isOfTransaction(cause) ? [] : hidden) {
    const key = `${chainId}:${signer}`;
    if (txId !== null) byLane.set(key, Math.max(byLane.get(key) ?? 0, waiting + 1));
  }
  const waiting = [...byLane.values()].reduce((sum, each) => sum + each, 0);
  const severity = SEVERITIES.find((each) => each === cause.severity || same.some((row) => row.severity === each));
  return { ...cause, severity: severity ?? cause.severity, since, waiting: Math.max(cause.waiting, waiting) };
}

function earlier(a: Date | null, b: Date | null) {
  return a === null || b === null ? (a ?? b) : a <= b ? a : b;
}

/** Restores a row from JSON, which has no dates. A report of an older node has neither `over` nor `asOf`. */
export function revived(row: Omit<Trouble, "since" | "asOf"> & { since: string | null; asOf?: string }): Trouble {
  const { since, asOf, ...rest } = row;
  const dates = { since: since === null ? null : new Date(since), ...(asOf !== undefined && { asOf: new Date(asOf) }) };
  return { ...rest, ...dates, over: rest.over ?? false };
}
