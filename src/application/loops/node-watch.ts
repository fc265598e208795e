/**
 * Watches the node as a whole: writes that are fenced again and again, payloads that are sent again and again (both counted from
 * telemetry), receipts that come faster than they are read, a chain of which no endpoint answers or that stands still.
 */
import { Growth } from "../../domain/pace/growth.ts";
import { RecentCount } from "../../domain/pace/recent-count.ts";
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
  private readonly clock;
  private readonly standing;
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

  private count(event: TelemetryEvent) {
    if (event.type === "lease.fenced") this.fenced.add(this.clock.monotonicMs());
    if (event.type !== "submit.answered") return;
    this.sent.add(this.clock.monotonicMs());
    if (!event.first) this.repeated.add(this.clock.monotonicMs());
  }

  private lookAtFenced(count: number) {
    const message = `${count} writes of this node came too late for their term in five minutes`;
    this.standing.judge({ code: "FENCED_SURGE", message }, count >= FENCED_SURGE, count < FENCED_SURGE / 2);
  }

  private lookAtRepeats(repeats: number, sends: number) {
    const message = `${repeats} of ${sends} submissions in five minutes were repeats`;
    const isSurge = repeats >= RESUBMIT_SURGE && repeats >= RESUBMIT_SHARE * sends;
    this.standing.judge({ code: "RESUBMIT_SURGE", message }, isSurge, repeats < RESUBMIT_SURGE / 2);
  }

  private lookAtBacklog() {
    const { grown, stopped } = this.backlog;
    const isGrown = grown !== null && grown.to >= BACKLOG_OF_NOTE;
    const message = isGrown
      ? `receipts come faster than they are read: ${grown.from} were owed at best, and ${grown.to} are five minutes later`
      : "the backlog of receipts no longer grows";
    this.standing.judge({ code: "RECEIPT_BACKLOG_GROWING", message }, isGrown, stopped);
  }

  private lookAtBlocks(context: ChainContext, owned: readonly OwnedLane[]) {
    const { chainId } = context.chain;
    const isStalled = context.isStalled(owned);
    const message = isStalled
      ? `chain ${chainId} answers, and no block has come after ${context.follower.head?.number} for many times as long as one takes`
      : `chain ${chainId} has new blocks again, or does not answer at all`;
    this.standing.judge({ code: "CHAIN_STALLED", message, chainId }, isStalled);
  }

  private lookAtChain({ chain: { chainId }, reachable }: ChainContext, nowMs: number) {
    const sinceMs = this.downSinceMs.get(chainId) ?? nowMs;
    if (reachable) this.downSinceMs.delete(chainId);
    else this.downSinceMs.set(chainId, sinceMs);
    const message = reachable
      ? `chain ${chainId} answers again`
      : `no endpoint of chain ${chainId} has answered for ${Math.round((nowMs - sinceMs) / 1_000)} s: nothing is sent, and nothing becomes final`;
    const isDown = !reachable && nowMs - sinceMs >= CHAIN_DOWN_MS;
    this.standing.judge({ code: "CHAIN_DOWN", message, chainId }, isDown, reachable);
  }
}
