import type { FeeMarket } from "../../domain/transaction/fees.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ChainSettings } from "../settings.ts";
import { Answers } from "./answers.ts";

/** Age in polls up to which a market is used while a newer one is requested: one more block's base fee at most. */
const RECENT_POLLS = 2;

/** A chain's fee market, requested at most once per poll and block. */
export class FeeMarkets {
  private readonly ask;
  private readonly clock;
  private readonly settings;
  private readonly answers: Answers<"market", FeeMarket>;
  private last: { readonly market: FeeMarket; readonly askedAtMs: number } | null = null;

  constructor(ask: () => Promise<FeeMarket>, clock: Clock, settings: Pick<ChainSettings, "pollIntervalMs">) {
    this.ask = ask;
    this.clock = clock;
    this.settings = settings;
    this.answers = new Answers(clock);
  }

  /** The last market that was read, however old. */
  get known(): FeeMarket | null {
    return this.last?.market ?? null;
  }

  /** The market of this poll and block. */
  newest(): Promise<FeeMarket> {
    return this.answers.about("market", this.settings.pollIntervalMs, async (askedAtMs) => {
      const market = await this.ask();
      this.last = { market, askedAtMs };
      return market;
    });
  }

  /**
   * The last market, if it is recent enough to check a create by it, which is priced anew when it is signed. A newer one
   * is requested at the same time, so that under steady load no create waits for a market. Null: wait for a new one.
   */
  recent(): FeeMarket | null {
    const { last } = this;
    const mostMs = RECENT_POLLS * this.settings.pollIntervalMs;
    if (last === null || this.clock.monotonicMs() - last.askedAtMs >= mostMs) return null;
    // A failure is reported to the next create that waits for a market.
    this.newest().catch(() => undefined);
    return last.market;
  }

  /** A new block ends the validity of the market of the last one. */
  forget(): void {
    this.answers.clear();
  }
}
