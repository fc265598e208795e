/** Figures over time, merged from the buckets of all nodes (application/lane/figure-book.ts). */
import { invalid } from "../../domain/errors.ts";
import {
  bucketStart,
  type FigureRow,
  Figures,
  HOUR_S,
  MINUTE_S,
  type StoredStep,
} from "../../domain/figures/figures.ts";
import { ANYBODY, type Limits } from "../../domain/keys/principal.ts";
import type { Address } from "../../domain/lane.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { given } from "../requests/fields.ts";
import { parseSigner } from "../requests/normalise.ts";
import { rangeOf } from "./costs.ts";

export interface HistoryQuery {
  readonly chainId?: number;
  readonly signer?: string;
  readonly from?: string | Date;
  readonly to?: string | Date;
  /** Length of a bucket in seconds. */
  readonly step?: number;
}

/** Steps that are chosen without a wish, each of which divides the next. */
const STEPS = [60, 300, 900, 3_600, 21_600, 86_400] as const;
const USUAL_BUCKETS = 300;
const MOST_BUCKETS = 1_500;
/** How long buckets of a minute are kept. */
const MINUTES_KEPT_MS = 24 * 3_600_000;
/** Rows of minutes that are read at most for a key that is limited to many signers; beyond that, hours are read. */
const MOST_MINUTES = 20_000;
const MOST_SPENDERS = 20;

export async function history(
  ports: Pick<CallPorts, "codec" | "store" | "clock" | "settings">,
  query: HistoryQuery = {},
  limits: Limits = ANYBODY,
) {
  const { from, to } = rangeOf(ports, query);
  const signers = signersOf(ports, query, limits);
  const chains = query.chainId === undefined ? limits.chains && [...limits.chains] : [query.chainId];
  const { source, step } = stepsOf(ports, { from, to, many: signers?.length ?? 1, wanted: query.step });
  const filter = { from: bucketStart(from, source), to, signers, chains };
  const hours = { ...filter, from: bucketStart(from, HOUR_S) };
  const [rows, spenders] = await Promise.all([
    ports.store.figures(source, filter),
    ports.store.spenders(hours, MOST_SPENDERS),
  ]);
  const nameOf = (signer: Address) => ports.settings.signerNames?.get(signer) ?? null;
  return {
    from,
    to,
    stepSeconds: step,
    buckets: bucketsOf(rows, step),
    keys: keysOf(rows),
    signers: spenders.map((each) => ({ ...each, name: nameOf(each.signer) })),
  };
}

/** The signers whose buckets are merged; null for the sums of chains. */
function signersOf({ codec }: Pick<CallPorts, "codec">, { signer }: HistoryQuery, limits: Limits) {
  const named = given(signer, (value) => parseSigner(codec, value, "signer"));
  return named === undefined ? limits.signers && [...limits.signers] : [named];
}

interface Range {
  readonly from: Date;
  readonly to: Date;
  /** Number of signers whose buckets are read. */
  readonly many: number;
  readonly wanted: number | undefined;
}

/** The stored buckets to read, and the length of the buckets to show. */
function stepsOf(
  { clock }: Pick<CallPorts, "clock">,
  range: Range,
): { readonly source: StoredStep; readonly step: number } {
  const { from, to, many, wanted } = range;
  const seconds = (to.getTime() - from.getTime()) / 1_000;
  if (wanted !== undefined && (!Number.isSafeInteger(wanted) || wanted < MINUTE_S || wanted > 86_400))
    throw invalid("step", "must be a whole number of seconds from 60 to 86400");
  const usual = STEPS.find((each) => seconds / each <= USUAL_BUCKETS) ?? 86_400;
  const hasMinutes = from.getTime() >= clock.now().getTime() - MINUTES_KEPT_MS - MINUTE_S * 1_000;
  const isFew = many * (seconds / MINUTE_S) <= MOST_MINUTES;
  const source = hasMinutes && isFew && (wanted ?? usual) % HOUR_S !== 0 ? MINUTE_S : HOUR_S;
  const step = Math.ceil((wanted ?? usual) / source) * source;
  if (seconds / step > MOST_BUCKETS)
    throw invalid("step", `is too short for this range: at most ${MOST_BUCKETS} buckets are shown`);
  return { source, step };
}

function bucketsOf(rows: readonly FigureRow[], step: number) {
  const merged = new Map<number, Figures>();
  const chains = new Set(rows.map(({ chainId }) => chainId));
  for (const row of rows) {
    const at = bucketStart(row.at, step).getTime();
    const figures = merged.get(at) ?? new Figures();
    merged.set(at, figures);
    figures.merge(row);
  }
  const buckets = [...merged].sort(([a], [b]) => a - b);
  return buckets.map(([at, figures]) => shown(new Date(at), figures, chains.size === 1));
}

/** Prices of several chains are in different currencies, and are not shown together. */
function shown(at: Date, figures: Figures, isOneChain: boolean) {
  const { created, completed, failed, stuck, reorged, fees, troubles } = figures;
  const [p50, p95] = [figures.finalityMs(0.5), figures.finalityMs(0.95)];
  return {
    ...{ at, created, completed, failed, stuck, reorged, fees },
    finalityMs: p50 === null || p95 === null ? null : { p50, p95 },
    baseFee: isOneChain ? figures.baseFee.shown() : null,
    offered: isOneChain ? figures.offered.shown() : null,
    troubles: [...troubles].map(([code, count]) => ({ code, count })),
  };
}

/** Spend by API key and chain, highest first. */
function keysOf(rows: readonly FigureRow[]) {
  const byChain = new Map<number, Figures>();
  for (const row of rows) {
    const figures = byChain.get(row.chainId) ?? new Figures();
    byChain.set(row.chainId, figures);
    figures.merge(row);
  }
  return [...byChain]
    .flatMap(([chainId, { keys }]) => [...keys].map(([key, spend]) => ({ key, chainId, ...spend })))
    .sort((a, b) => Number(b.fees - a.fees) || b.completed - a.completed);
}
