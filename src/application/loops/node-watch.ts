/**
 * Looks at the node as a whole for what no lane shows by itself: writes that are fenced again and again, payloads that are sent
 * again and again, receipts that come faster than they are read, a chain of which no endpoint answers. Each is said once while
 * it lasts, and once when it is over. Hears of the first two as everybody does, by the telemetry.
 */
import { Growth } from "../../domain/growth.ts";
import { RecentCount } from "../../domain/recent-count.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Telemetry, TelemetryEvent } from "../../ports/telemetry.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { StandingAlerts } from "../standing-alerts.ts";

const WINDOW_MS = 300_000;
/** A takeover fences a write or two for each lane. More is a node that loses its lease again and again, or two that both act. */
const FENCED_SURGE = 10;
/** Fewer prove nothing; and of a busy node's many, a fifth must be repeats before they are what it is busy with. */
const RESUBMIT_SURGE = 50;
const RESUBMIT_SHARE = 0.2;
const STRETCH_MS = 60_000;
/** Less than so much left over is a moment's work. */
const BACKLOG_OF_NOTE = 10;
/** An endpoint may be restarted, and the next one asked, in less. */
const CHAIN_DOWN_MS = 10_000;

type WatchPorts = Pick<Ports, "clock" | "telemetry">;

type Chains = ReadonlyMap<number, ChainContext>;
type Held = { onChain(chainId: number): readonly OwnedLane[] };

export class NodeWatch {
  /** To be used in place of the one that was given. */
  readonly telemetry: Telemetry;
  private readonly clock: WatchPorts["clock"];
  private readonly standing: StandingAlerts;
  private readonly fenced = new RecentCount(WINDOW_MS);
  private readonly sent = new RecentCount(WINDOW_MS);
  private readonly repeated = new RecentCount(WINDOW_MS);
  private readonly backlog = new Growth(STRETCH_MS);
  private readonly downSinceMs = new Map<number, number>();

  constructor({ clock, telemetry }: WatchPorts) {
    this.clock = clock;
    this.standing = new StandingAlerts(telemetry);
    this.telemetry = {
      emit: (event) => {
        this.count(event);
        telemetry.emit(event);
      },
    };
  }

  look(chains: Chains, lanes: Held, receiptBacklog: number): void {
    const nowMs = this.clock.monotonicMs();
    this.lookAtFenced(this.fenced.within(nowMs));
    this.lookAtRepeats(this.repeated.within(nowMs), this.sent.within(nowMs));
    this.backlog.see(nowMs, receiptBacklog);
    this.lookAtBacklog();
    for (const [chainId, context] of chains) {
      this.lookAtChain(context, nowMs);
      this.lookAtBlocks(context, lanes.onChain(chainId));
      if (context.standing.size === 0) continue;
      const held = new Set(lanes.onChain(chainId).map(({ key }) => key));
      context.standing.leave((key) => held.has(key));
    }
  }

  private count(event: TelemetryEvent): void {
    if (event.type === "lease.fenced") this.fenced.add(this.clock.monotonicMs());
    if (event.type !== "submit.answered") return;
    this.sent.add(this.clock.monotonicMs());
    if (!event.first) this.repeated.add(this.clock.monotonicMs());
  }

  private lookAtFenced(count: number): void {
    const code = "FENCED_SURGE";
    const message = `${count} writes of this node came too late for their term in five minutes`;
    if (count >= FENCED_SURGE) this.standing.raise({ severity: "ERROR", code, message });
    else if (count < FENCED_SURGE / 2) this.standing.resolve({ code }, message);
  }

  private lookAtRepeats(repeats: number, sends: number): void {
    const code = "RESUBMIT_SURGE";
    const message = `${repeats} of ${sends} submissions in five minutes were repeats`;
    const isSurge = repeats >= RESUBMIT_SURGE && repeats >= RESUBMIT_SHARE * sends;
    if (isSurge) this.standing.raise({ severity: "WARNING", code, message });
    else if (repeats < RESUBMIT_SURGE / 2) this.standing.resolve({ code }, message);
  }

  private lookAtBacklog(): void {
    const code = "RECEIPT_BACKLOG_GROWING";
    const { grown, stopped } = this.backlog;
    if (grown !== null && grown.to >= BACKLOG_OF_NOTE) {
      const message = `receipts come faster than they are read: ${grown.from} were owed at best, and ${grown.to} are five minutes later`;
      this.standing.raise({ severity: "ERROR", code, message });
    } else if (stopped) this.standing.resolve({ code }, "the backlog of receipts no longer grows");
  }

  private lookAtBlocks(context: ChainContext, owned: readonly OwnedLane[]): void {
    const { chainId } = context.chain;
    const code = "CHAIN_STALLED";
    const head = context.follower.head?.number;
    const message = `chain ${chainId} answers, and no block has come after ${head} for many times as long as one takes`;
    if (context.isStalled(owned)) this.standing.raise({ severity: "ERROR", code, message, chainId });
    else this.standing.resolve({ code, chainId }, `chain ${chainId} has new blocks again, or does not answer at all`);
  }

  private lookAtChain({ chain: { chainId }, reachable }: ChainContext, nowMs: number): void {
    const code = "CHAIN_DOWN";
    if (reachable) {
      this.downSinceMs.delete(chainId);
      this.standing.resolve({ code, chainId }, `chain ${chainId} answers again`);
      return;
    }
    const sinceMs = this.downSinceMs.get(chainId) ?? nowMs;
    this.downSinceMs.set(chainId, sinceMs);
    if (nowMs - sinceMs < CHAIN_DOWN_MS) return;
    const message = `no endpoint of chain ${chainId} has answered for ${Math.round((nowMs - sinceMs) / 1_000)} s: nothing is sent, and nothing becomes final`;
    this.standing.raise({ severity: "CRITICAL", code, message, chainId });
  }
}
