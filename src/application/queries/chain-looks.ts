/**
 * What a person asks the chain about one transaction: its logs, and why it reverted. Asked only where somebody did, of one
 * endpoint, a few at once and each once in a few seconds, so that a page that is left open, or a key that asks in a loop, costs an
 * endpoint next to nothing. Nothing is kept, and nothing decided by it.
 */
import { FencepostError } from "../../domain/errors.ts";
import { ChainUnavailable } from "../../ports/chain.ts";
import { within } from "../../ports/clock.ts";
import type { TransactionRecord } from "../../ports/query-store.ts";
import type { OutcomeQuestion } from "../../ports/shown-outcome.ts";
import type { ChainLook, LookKind } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";

const ANSWERED_WITHIN_MS = 5_000;
const KEPT_FOR_MS = 5_000;
const MOST_KEPT = 100;
const MOST_AT_ONCE = 4;

interface Kept {
  readonly atMs: number;
  readonly look: Promise<ChainLook>;
}

export class ChainLooks {
  private readonly ports: Pick<CallPorts, "clock" | "chains">;
  private readonly kept = new Map<string, Kept>();
  private underWay = 0;

  constructor(ports: Pick<CallPorts, "clock" | "chains">) {
    this.ports = ports;
  }

  /** QUEUE_FULL where too many are being answered. */
  of(record: TransactionRecord): Promise<ChainLook> {
    const { txId, receipt } = record;
    if (receipt === null) return Promise.resolve(this.nothing("unmined"));
    const key = `${txId} ${receipt.blockHash}`;
    const nowMs = this.ports.clock.monotonicMs();
    const known = this.kept.get(key);
    if (known !== undefined && nowMs - known.atMs < KEPT_FOR_MS) return known.look;
    if (this.underWay >= MOST_AT_ONCE) {
      const detail = "the chain is being asked about as many transactions as may be at once: ask again in a moment";
      return Promise.reject(new FencepostError("QUEUE_FULL", detail, { retryAfterSeconds: 1 }));
    }
    const look = this.counted(() => this.ask(record, receipt.blockHash));
    this.kept.delete(key);
    this.kept.set(key, { atMs: nowMs, look });
    const [oldest] = this.kept.keys();
    if (this.kept.size > MOST_KEPT && oldest !== undefined) this.kept.delete(oldest);
    return look;
  }

  private async ask(record: TransactionRecord, blockHash: string): Promise<ChainLook> {
    const context = this.ports.chains.get(record.lane.chainId);
    const question = questionOf(record);
    if (context === undefined || question === null) return this.nothing("silent");
    const late = () => {
      throw new ChainUnavailable("no answer in time");
    };
    try {
      const outcome = await within(this.ports.clock, context.chain.outcome(question), { ms: ANSWERED_WITHIN_MS, late });
      if (outcome === null) return this.nothing("unknown");
      if (outcome.blockHash !== blockHash) return this.nothing("differs");
      return { kind: "shown", askedAt: this.ports.clock.now(), ...outcome };
    } catch (error) {
      if (error instanceof ChainUnavailable) return this.nothing("silent");
      throw error;
    }
  }

  private async counted<T>(work: () => Promise<T>) {
    this.underWay++;
    try {
      return await work();
    } finally {
      this.underWay--;
    }
  }

  private nothing(kind: LookKind): ChainLook {
    return { kind, askedAt: this.ports.clock.now(), blockHash: null, logs: [], more: 0, revert: null };
  }
}

/** What was called is known where the payload that was mined is the caller's. */
function questionOf({ lane, payload, receipt, attempts, gas }: TransactionRecord): OutcomeQuestion | null {
  if (receipt === null) return null;
  const { txHash, blockNumber, status } = receipt;
  const mined = attempts.find((attempt) => attempt.txHash === txHash);
  const isCallers = mined?.foreign !== true && (mined?.kind === "initial" || mined?.kind === "reprice");
  if (status !== "reverted" || !isCallers || blockNumber === 0) return { txHash, replay: null };
  const { to, data, value } = payload;
  const call = { from: lane.signer, to, data, value, gas: mined.gas ?? gas ?? undefined };
  return { txHash, replay: { call, onBlock: blockNumber - 1 } };
}
