/**
 * A gas oracle behind a URL: JSON with the fees somewhere in it. It only advises. Where it is silent, or answers with what is
 * no price, the chain's market decides alone, and what it says is bounded like any other answer (domain/fees.ts).
 */
import type { Offer } from "../../domain/fees.ts";
import type { Clock } from "../../ports/clock.ts";
import type { GasOracle } from "../../ports/gas-oracle.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import { readLimited, reasonOf } from "./post-json.ts";

export interface GasOracleOptions {
  readonly url: string;
  /** Where each fee stands in the answer, as `standard.maxFee`. */
  readonly fields: OracleFields;
  readonly unit: "wei" | "gwei";
  readonly chainId: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Connects nowhere but where hooks may lead (guarded-fetch.ts). */
  readonly fetch: typeof globalThis.fetch;
}

export interface OracleFields {
  readonly maxFeePerGas: string;
  readonly maxPriorityFeePerGas: string;
}

/** Blocks may come four times a second; advice does not. */
const ASK_AGAIN_MS = 3_000;
const TIMEOUT_MS = 2_000;
/** What is not a plain figure of at most so many digits is no price. */
const FIGURE = /^(\d{1,30})(?:\.(\d{1,30}))?$/;
const DECIMALS = { wei: 0, gwei: 9 };

export function createGasOracle(options: GasOracleOptions): GasOracle {
  const { clock, telemetry, chainId } = options;
  let last: { readonly atMs: number; readonly offer: Promise<Offer | null> } | null = null;
  let isAway = false;
  const code = "GAS_ORACLE_AWAY";
  const ask = async (): Promise<Offer | null> => {
    try {
      const offer = readOffer(await fetchText(options), options);
      if (isAway)
        telemetry.emit({
          type: "alert.resolved",
          code,
          message: `the gas oracle of chain ${chainId} answers`,
          chainId,
        });
      isAway = false;
      return offer;
    } catch (error) {
      const message = `the gas oracle of chain ${chainId} is of no use: ${(error as Error).message}; the market alone decides`;
      if (!isAway) telemetry.emit({ type: "alert", severity: "WARNING", code, message, chainId });
      isAway = true;
      return null;
    }
  };
  return {
    offer: () => {
      const nowMs = clock.monotonicMs();
      if (last === null || nowMs - last.atMs >= ASK_AGAIN_MS) last = { atMs: nowMs, offer: ask() };
      return last.offer;
    },
  };
}

async function fetchText({ url, fetch, clock }: GasOracleOptions): Promise<string> {
  const deadline = new AbortController();
  const cancelTimer = clock.after(TIMEOUT_MS, () => deadline.abort());
  try {
    const response = await fetch(url, { redirect: "error", signal: deadline.signal });
    const text = await readLimited(response);
    if (!response.ok) throw new Error(`answered ${response.status}`);
    return text;
  } catch (error) {
    if (deadline.signal.aborted) throw new Error(`no answer within ${TIMEOUT_MS} ms`);
    throw (error as Error).cause === undefined ? error : new Error(reasonOf(error));
  } finally {
    cancelTimer();
  }
}

function readOffer(text: string, { fields, unit }: GasOracleOptions): Offer {
  const answer = parse(text);
  const maxFeePerGas = feeAt(answer, fields.maxFeePerGas, unit);
  if (maxFeePerGas === null) throw new Error(`its answer has no ${fields.maxFeePerGas}`);
  const tip = feeAt(answer, fields.maxPriorityFeePerGas, unit);
  return { maxFeePerGas, ...(tip === null ? {} : { maxPriorityFeePerGas: tip }), isFixed: false };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("its answer is not JSON");
  }
}

/** Null: nothing stands there. */
function feeAt(answer: unknown, path: string, unit: GasOracleOptions["unit"]): bigint | null {
  const found = path
    .split(".")
    .reduce<unknown>((part, name) => (Object(part) as Record<string, unknown>)[name], answer);
  if (found === undefined || found === null) return null;
  const text = typeof found === "number" ? String(found) : found;
  if (typeof text === "string" && unit === "wei" && /^0x[0-9a-f]{1,25}$/i.test(text)) return BigInt(text);
  const match = typeof text === "string" ? FIGURE.exec(text) : null;
  if (match === null) throw new Error(`${path} is not a price`);
  const [, whole = "", fraction = ""] = match;
  return BigInt(whole + fraction.slice(0, DECIMALS[unit]).padEnd(DECIMALS[unit], "0"));
}
