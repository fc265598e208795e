/**
 * Blocks on which no decision is based, because the chain's endpoints disagree about them, or because an endpoint that
 * is up has not returned them for a minute (it lags, or answers only other requests). This state, a dispute, ends when
 * two endpoints agree, or when the only endpoint that is up no longer contradicts itself. Operators are alerted, but
 * not for every block and poll.
 */
import type { Hash } from "../../domain/lane.ts";
import type { BlockPlace } from "../../ports/chain.ts";
import type { Ports } from "../../ports/ports.ts";

export interface Dispute {
  readonly code: "RPC_DISAGREES" | "RPC_BEHIND";
  readonly block: BlockPlace;
  /** Latest answers about the disputed block, each with its endpoint. */
  readonly answers: readonly string[];
  readonly since: Date;
  /** Monotonic time in ms at which the dispute began. */
  readonly sinceMs: number;
  /** Number of consecutive checks in which the endpoints disagreed. */
  readonly times: number;
  /** Monotonic time in ms before which the disputed block is not requested again. */
  readonly nextAskMs: number;
}

interface DisputesPorts extends Pick<Ports, "clock" | "telemetry"> {
  readonly chainId: number;
  readonly pollIntervalMs: number;
}

/**
 * Longest pause before a disputed block is fetched again: an endpoint that is always wrong must not cause whole blocks
 * to be fetched at every poll.
 */
const LONGEST_WAIT_MS = 30_000;
/**
 * Minimum time between two alerts of one code: an endpoint that is wrong about every block would otherwise raise an
 * alert per block.
 */
const ALERT_INTERVAL_MS = 60_000;
/** How long an endpoint may be behind before an alert: endpoints are often a few blocks apart. */
const PATIENCE_MS = 60_000;

export class Disputes {
  private readonly ports;
  private readonly open = new Map<Hash, Dispute>();
  /** Contradictions between endpoints in the newest fee market; null if there are none. */
  prices: Pick<Dispute, "answers" | "since"> | null = null;
  /** Monotonic time of the last alert, by code. */
  private readonly alertedAtMs = new Map<Dispute["code"], number>();

  constructor(ports: DisputesPorts) {
    this.ports = ports;
  }

  /**
   * The dispute about a block (its endpoints disagree or do not answer); null if there is none, or if it has not lasted
   * long. While a dispute lasts, no decision is based on this block.
   */
  about(blockHash: Hash): Dispute | null {
    const dispute = this.open.get(blockHash);
    return dispute !== undefined && this.isOfNote(dispute) ? dispute : null;
  }

  /** False if the endpoints disagreed about the block a short time ago, and it is too early to request it again. */
  mayAsk(blockHash: Hash): boolean {
    const dispute = this.open.get(blockHash);
    return dispute === undefined || this.ports.clock.monotonicMs() >= dispute.nextAskMs;
  }

  note(block: BlockPlace, answers: readonly string[]): void {
    const { clock, pollIntervalMs } = this.ports;
    const begun = this.begun("RPC_DISAGREES", block);
    const times = begun.times + 1;
    const waitMs = Math.min(LONGEST_WAIT_MS, pollIntervalMs * 2 ** Math.min(times - 1, 16));
    this.keep({ ...begun, answers, times, nextAskMs: clock.monotonicMs() + waitMs });
  }

  /**
   * Records that an endpoint whose answer is needed does not answer. If endpoints were already found to contradict each
   * other about this block, that record stays instead, until two of them agree.
   */
  wait(block: BlockPlace, detail: string): void {
    if (this.open.get(block.hash)?.code === "RPC_DISAGREES") return;
    this.keep({ ...this.begun("RPC_BEHIND", block), answers: [detail] });
  }

  /**
   * Records how endpoints contradict each other about the newest fee market; null if they do not. Until they agree, the
   * lower price is used.
   */
  notePrices(answers: readonly string[] | null): void {
    this.prices = answers && { answers, since: this.prices?.since ?? this.ports.clock.now() };
    if (answers === null) return;
    const said = answers.join("; ");
    this.alert(
      "RPC_DISAGREES",
      `what is said of the price of gas on chain ${this.ports.chainId} cannot all be true, and the lower price is offered first: ${said}`,
    );
  }

  end(blockHash: Hash): void {
    this.open.delete(blockHash);
  }

  /** Drops disputes about blocks that no longer contain our transactions. */
  keepOnly(isOfInterest: (blockHash: Hash) => boolean): void {
    for (const hash of this.open.keys()) if (!isOfInterest(hash)) this.open.delete(hash);
  }

  /** Disputes that operators should see, oldest first. */
  ofNote(): readonly { readonly code: Dispute["code"]; readonly number: number; readonly since: Date }[] {
    const open = [...this.open.values()].filter((dispute) => this.isOfNote(dispute));
    return open.map(({ code, block, since }) => ({ code, number: block.number, since }));
  }

  get size(): number {
    return this.open.size;
  }

  private begun(code: Dispute["code"], block: BlockPlace) {
    const known = this.open.get(block.hash);
    if (known?.code === code) return known;
    const { clock } = this.ports;
    return { code, block, answers: [], since: clock.now(), sinceMs: clock.monotonicMs(), times: 0, nextAskMs: 0 };
  }

  private keep(dispute: Dispute) {
    this.open.set(dispute.block.hash, dispute);
    if (this.isOfNote(dispute)) this.alertOf(dispute);
  }

  private isOfNote({ code, sinceMs }: Dispute) {
    return code === "RPC_DISAGREES" || this.ports.clock.monotonicMs() - sinceMs >= PATIENCE_MS;
  }

  private alertOf({ code, block: { number, hash }, answers }: Dispute) {
    const others = [...this.open.values()].filter((each) => each.code === code).length - 1;
    const which = `block ${number} ${hash} of chain ${this.ports.chainId}${others > 0 ? ` (and ${others} more blocks)` : ""}`;
    const said = answers.join("; ");
    const message =
      code === "RPC_BEHIND"
        ? `an endpoint that is up has not said for a minute what ${which} holds, and nothing is decided by it: ${said}`
        : `what is said of ${which} cannot all be true, and decides nothing: ${said}`;
    this.alert(code, message);
  }

  private alert(code: Dispute["code"], message: string) {
    const { chainId, clock, telemetry } = this.ports;
    const nowMs = clock.monotonicMs();
    const alertedAtMs = this.alertedAtMs.get(code);
    if (alertedAtMs !== undefined && nowMs - alertedAtMs < ALERT_INTERVAL_MS) return;
    this.alertedAtMs.set(code, nowMs);
    const severity = code === "RPC_BEHIND" ? "WARNING" : "ERROR";
    telemetry.emit({ type: "alert", severity, code, message, chainId });
  }
}
