/**
 * Reads fees from a gas oracle behind a URL that returns JSON. The oracle only advises: without a usable response the
 * chain's fee market decides alone, and the oracle's fees have the same limits as any other (domain/fees/ceilings.ts).
 */
import type { Offer } from "../../domain/transaction/fees.ts";
import type { GasOracle } from "../../ports/gas-oracle.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import { fetchText, type PostPorts, parseAnswer } from "./post-json.ts";

interface GasOracleOptions extends Pick<PostPorts, "clock" | "fetch"> {
  readonly url: string;
  /** Path of each fee in the oracle's response, such as `standard.maxFee`. */
  readonly fields: { readonly maxFeePerGas: string; readonly maxPriorityFeePerGas: string };
  readonly unit: "wei" | "gwei";
  readonly chainId: number;
  readonly telemetry: Telemetry;
}

/** How long a response of the oracle is cached: there may be four blocks a second, but oracles update less often. */
const ASK_AGAIN_MS = 3_000;
const TIMEOUT_MS = 2_000;
/** Matches a price: a plain decimal number with a limited number of digits. */
const FIGURE = /^(\d{1,30})(?:\.(\d{1,30}))?$/;
const DECIMALS = { wei: 0, gwei: 9 };

export function createGasOracle(options: GasOracleOptions): GasOracle {
  const { clock, telemetry, chainId } = options;
  let last: { readonly atMs: number; readonly offer: Promise<Offer | null> } | null = null;
  let isAway = false;
  const code = "GAS_ORACLE_AWAY";
  const ask = async (): Promise<Offer | null> => {
    try {
      const offer = readOffer(await fetchText(options, options.url, { timeoutMs: TIMEOUT_MS }), options);
      const message = `the gas oracle of chain ${chainId} answers`;
      if (isAway) telemetry.emit({ type: "alert.resolved", code, message, chainId });
      isAway = false;
      return offer;
    } catch (error) {
      const message = `the gas oracle of chain ${chainId} gives no usable price: ${(error as Error).message}; fees come from the chain alone`;
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

function readOffer(text: string, { fields, unit }: GasOracleOptions): Offer {
  const answer = parseAnswer(text);
  const maxFeePerGas = feeAt(answer, fields.maxFeePerGas, unit);
  if (maxFeePerGas === null) throw new Error(`the gas oracle's response has no ${fields.maxFeePerGas}`);
  const tip = feeAt(answer, fields.maxPriorityFeePerGas, unit);
  return { maxFeePerGas, ...(tip === null ? {} : { maxPriorityFeePerGas: tip }), isFixed: false };
}

/** Reads the fee at a path of the oracle's response; null if the path has no value. */
function feeAt(answer: unknown, path: string, unit: GasOracleOptions["unit"]) {
  const found = path
    .split(".")
    .reduce<unknown>((part, name) => (Object(part) as Record<string, unknown>)[name], answer);
  if (found === undefined || found === null) return null;
  const text = typeof found === "number" ? String(found) : found;
  if (typeof text === "string" && unit === "wei" && /^0x[0-9a-f]{1,25}$/i.test(text)) return BigInt(text);
  const match = typeof text === "string" ? FIGURE.exec(text) : null;
  if (match === null) throw new Error(`${path} in the gas oracle's response is not a price`);
  const [, whole = "", fraction = ""] = match;
  return BigInt(whole + fraction.slice(0, DECIMALS[unit]).padEnd(DECIMALS[unit], "0"));
}
