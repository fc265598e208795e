/**
 * The most gas that a transaction may ask for on one chain. Its block says one limit; the other, for a single transaction,
 * is what the settings say, else what is known of the chain by its id, else what a node named when it refused a payload.
 *
 * Reads: the followed head. Writes: nothing durable. A crash forgets what was learned; the next refusal teaches it again.
 */
import { type GasLimit, knownGasCap, lowerLimit } from "../../domain/fees/gas.ts";
import type { Clock } from "../../ports/clock.ts";

/** What was learned is believed for this long: a chain may raise its cap, and one refusal may have been a mistake. */
const LEARNED_FOR_MS = 60 * 60_000;
/** Below every cap that is in use: one endpoint that names less would have most creates refused. It is not believed. */
const LEAST_CAP = 1_000_000n;

interface Options {
  readonly chainId: number;
  /** Null: not configured. */
  readonly configured: bigint | null;
  readonly clock: Clock;
  readonly blockGasLimit: () => bigint | null;
}

export class GasLimits {
  private readonly options;
  private learned: { readonly cap: bigint; readonly untilMs: number } | null = null;

  constructor(options: Options) {
    this.options = options;
  }

  /** Null: neither a block was seen nor a cap is known. */
  get most(): GasLimit | null {
    return lowerLimit(this.options.blockGasLimit(), this.cap);
  }

  /** For one transaction, however large the block; null: none is known. */
  get cap(): bigint | null {
    const { chainId, configured } = this.options;
    return configured ?? knownGasCap(chainId) ?? this.fresh();
  }

  /** Every node that was asked refused `gas`, and named `cap` as the most it takes. */
  learn(cap: bigint, gas: bigint): void {
    if (cap < LEAST_CAP || cap >= gas) return;
    this.learned = { cap, untilMs: this.options.clock.monotonicMs() + LEARNED_FOR_MS };
  }

  private fresh() {
    if (this.learned !== null && this.options.clock.monotonicMs() >= this.learned.untilMs) this.learned = null;
    return this.learned?.cap ?? null;
  }
}
