/** A TCP wire between a node and a server, which a fault can cut, block in one direction, or slow down. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { Clock } from "../../../ports/clock.ts";
import { LOOPBACK, portOf } from "../embedded/loopback-port.ts";

/** State of a wire. A blocked direction keeps its bytes until it is open again, as a partitioned network does. */
export interface WireState {
  /** Breaks connections, and refuses new ones. */
  readonly cut: boolean;
  readonly blocked: "none" | "requests" | "answers" | "both";
  readonly delayMs: number;
}

const WHOLE: WireState = { cut: false, blocked: "none", delayMs: 0 };

interface Pair {
  readonly client: Direction;
  readonly server: Direction;
}

export type Wire = Awaited<ReturnType<typeof openWire>>;

/** Listens on `port`, or on a free one, and forwards each connection to the target's port at that time. */
export async function openWire(clock: Clock, target: () => number, port = 0) {
  const pairs = new Set<Pair>();
  let state = WHOLE;
  const apply = ({ client, server }: Pair) => {
    const { blocked, delayMs } = state;
    client.set(blocked === "requests" || blocked === "both", delayMs);
    server.set(blocked === "answers" || blocked === "both", delayMs);
  };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    if (state.cut) return void near.resetAndDestroy();
    const far = connect({ port: target(), host: LOOPBACK, allowHalfOpen: true });
    const pair = { client: new Direction(clock, near, far), server: new Direction(clock, far, near) };
    pairs.add(pair);
    apply(pair);
    near.once("close", () => pairs.delete(pair));
  });
  await once(server.listen(port, LOOPBACK), "listening");
  const become = (next: Partial<WireState>) => {
    state = { ...WHOLE, ...next };
    if (state.cut) for (const { client } of pairs) client.reset();
    else for (const pair of pairs) apply(pair);
  };
  return {
    port: portOf(server),
    become,
    close: async () => {
      become({ cut: true });
      await once(server.close(), "close");
    },
  };
}

/** Bytes from one socket to the other, in their order. */
class Direction {
  private readonly clock: Clock;
  private readonly from: Socket;
  private readonly to: Socket;
  private delayMs = 0;
  private lastAtMs = 0;

  constructor(clock: Clock, from: Socket, to: Socket) {
    this.clock = clock;
    this.from = from;
    this.to = to;
    from.setNoDelay(true);
    from.on("data", (bytes) => this.later(() => to.write(bytes)));
    from.on("end", () => this.later(() => to.end()));
    from.on("error", () => this.reset());
    from.on("close", () => this.later(() => to.destroy()));
  }

  set(isBlocked: boolean, delayMs: number): void {
    this.delayMs = delayMs;
    if (isBlocked) this.from.pause();
    else this.from.resume();
  }

  reset(): void {
    this.from.resetAndDestroy();
    this.to.resetAndDestroy();
  }

  /** A shorter delay must not let bytes overtake those before them. */
  private later(deliver: () => void): void {
    const nowMs = this.clock.monotonicMs();
    const atMs = Math.max(nowMs + this.delayMs, this.lastAtMs);
    this.lastAtMs = atMs;
    const run = () => {
      if (!this.to.destroyed) deliver();
    };
    if (atMs <= nowMs) run();
    else this.clock.after(atMs - nowMs, run);
  }
}
