/**
 * Blocks that a chain's endpoints disagree about. Nothing of them is decided until two say the same, or the only one that
 * is up no longer contradicts itself; people are told, but not once per block and look.
 */
import type { Hash } from "../../domain/lane.ts";
import type { BlockPlace } from "../../ports/chain.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Telemetry } from "../../ports/telemetry.ts";

export interface Dispute {
  readonly block: BlockPlace;
  /** What was said last, each answer with who gave it. */
  readonly answers: readonly string[];
  readonly since: Date;
  /** Looks in a row that found them at odds. */
  readonly times: number;
  /** Monotonic: not asked about before. */
  readonly nextAskMs: number;
}

export interface DisputesPorts {
  readonly chainId: number;
  readonly pollIntervalMs: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** An endpoint that lies for good would otherwise have its whole blocks fetched at every look. */
const LONGEST_WAIT_MS = 30_000;
/** One that lies about every block would otherwise raise an alert with each. */
const ALERT_INTERVAL_MS = 60_000;

export class Disputes {
  private readonly ports: DisputesPorts;
  private readonly open = new Map<Hash, Dispute>();
  /** Monotonic: since when people have not been told; null: never. */
  private toldAtMs: number | null = null;

  constructor(ports: DisputesPorts) {
    this.ports = ports;
  }

  about(blockHash: Hash): Dispute | null {
    return this.open.get(blockHash) ?? null;
  }

  /** False: they were at odds a moment ago. */
  mayAsk(blockHash: Hash): boolean {
    const dispute = this.open.get(blockHash);
    return dispute === undefined || this.ports.clock.monotonicMs() >= dispute.nextAskMs;
  }

  note(block: BlockPlace, answers: readonly string[]): void {
    const { clock, pollIntervalMs } = this.ports;
    const known = this.open.get(block.hash);
    const times = (known?.times ?? 0) + 1;
    const waitMs = Math.min(LONGEST_WAIT_MS, pollIntervalMs * 2 ** Math.min(times - 1, 16));
    const since = known?.since ?? clock.now();
    this.open.set(block.hash, { block, answers, since, times, nextAskMs: clock.monotonicMs() + waitMs });
    this.alert(block, answers);
  }

  end(blockHash: Hash): void {
    this.open.delete(blockHash);
  }

  /** The others concern nobody here any more. */
  keepOnly(isOfInterest: (blockHash: Hash) => boolean): void {
    for (const hash of this.open.keys()) if (!isOfInterest(hash)) this.open.delete(hash);
  }

  get size(): number {
    return this.open.size;
  }

  private alert({ number, hash }: BlockPlace, answers: readonly string[]): void {
    const { chainId, clock, telemetry } = this.ports;
    const nowMs = clock.monotonicMs();
    if (this.toldAtMs !== null && nowMs - this.toldAtMs < ALERT_INTERVAL_MS) return;
    this.toldAtMs = nowMs;
    const others = this.open.size > 1 ? ` (and ${this.open.size - 1} more blocks)` : "";
    const message = `what is said of block ${number} ${hash} of chain ${chainId}${others} cannot all be true, and decides nothing: ${answers.join("; ")}`;
    telemetry.emit({ type: "alert", severity: "ERROR", code: "RPC_DISAGREES", message });
  }
}
