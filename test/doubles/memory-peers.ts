import type { Kill } from "../../src/domain/cluster/kills.ts";
import { FencepostError } from "../../src/domain/errors.ts";
import type { Lane } from "../../src/domain/lane.ts";
import type { Clock } from "../../src/ports/clock.ts";
import {
  type ForwardedAnswer,
  type ForwardedCreate,
  type LaneAnswer,
  type LaneRequest,
  type Peers,
  PeerUnreachable,
} from "../../src/ports/peers.ts";

type Answers = readonly (ForwardedAnswer | FencepostError)[];
type Receive = (creates: readonly ForwardedCreate[], repeat: boolean) => Promise<Answers>;
type Act = (lane: Lane, request: LaneRequest) => Promise<LaneAnswer | FencepostError>;
export type PeerFault = "refused" | "lostRequest" | "lostReply";

interface Listener {
  readonly receive: Receive;
  readonly act: Act;
  readonly kill: (kill: Kill) => void;
}

const noActions: Act = async () => new FencepostError("UNAVAILABLE", "this node takes no actions");

/**
 * Connections between nodes of one process. A disconnected node refuses connections; a mute one neither receives nor
 * responds; one behind a slow wire gets every call late; single calls can be lost in either direction.
 */
export class MemoryNetwork {
  readonly forwards: { readonly to: string; readonly count: number; readonly repeat: boolean }[] = [];
  private readonly clock: Clock;
  private readonly mute = new Set<string>();
  private readonly delaysMs = new Map<string, number>();
  private readonly nodes = new Map<string, Listener>();
  private readonly faults: { readonly fault: PeerFault; left: number }[] = [];

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** From now on, requests to this URL get no response, until `heal`. */
  silence(url: string): void {
    this.mute.add(url);
  }

  /** From now on, requests to this URL arrive late, perhaps after their callers have given up, until `heal`. */
  slow(url: string, delayMs: number): void {
    this.delaysMs.set(url, delayMs);
  }

  heal(url: string): void {
    this.mute.delete(url);
    this.delaysMs.delete(url);
  }

  join(url: string, receive: Receive, act: Act = noActions, kill: Listener["kill"] = () => undefined): void {
    this.nodes.set(url, { receive, act, kill });
  }

  hangUp(url: string): void {
    this.nodes.delete(url);
  }

  inject(fault: PeerFault, times = 1): void {
    this.faults.push({ fault, left: times });
  }

  connect(): Peers {
    return {
      introduce: (instanceId) => ({ publicKey: instanceId, keyProof: null }),
      know: () => undefined,
      create: (url, creates, { repeat, withinMs }) => {
        this.forwards.push({ to: url, count: creates.length, repeat });
        return this.call(url, withinMs, ({ receive }) => receive(overTheWire(creates), repeat));
      },
      act: (url, lane, { withinMs, ...request }) => {
        return this.call(url, withinMs, async ({ act }) => overTheWire(await act(lane, overTheWire(request))));
      },
      kill: (url, kill, withinMs) => this.call(url, withinMs, async (node) => node.kill(overTheWire(kill))),
      close: async () => undefined,
    };
  }

  private async call<T>(url: string, withinMs: number, ask: (node: Listener) => Promise<T>): Promise<T> {
    const node = this.nodes.get(url);
    const fault = this.strike();
    if (node === undefined || fault === "refused") throw new PeerUnreachable(`${url} refuses`, true);
    if (fault === "lostRequest") throw new PeerUnreachable(`no answer from ${url}`, false);
    const answer = await this.within(
      withinMs,
      this.mute.has(url) ? new Promise<T>(() => undefined) : this.late(url, ask),
    );
    if (answer === null || fault === "lostReply" || !this.nodes.has(url)) {
      throw new PeerUnreachable(`no answer from ${url}`, false);
    }
    return answer;
  }

  private async late<T>(url: string, ask: (node: Listener) => Promise<T>): Promise<T> {
    const delayMs = this.delaysMs.get(url) ?? 0;
    if (delayMs > 0) await this.clock.sleep(delayMs);
    const node = this.nodes.get(url);
    if (node === undefined) throw new PeerUnreachable(`${url} ended`, false);
    return ask(node);
  }

  private async within<T>(ms: number, work: Promise<T>): Promise<T | null> {
    let cancel = (): void => undefined;
    const silence = new Promise<null>((resolve) => {
      cancel = this.clock.after(ms, () => resolve(null));
    });
    try {
      return await Promise.race([work, silence]);
    } finally {
      cancel();
    }
  }

  private strike(): PeerFault | null {
    const first = this.faults[0];
    if (first === undefined) return null;
    if (--first.left <= 0) this.faults.shift();
    return first.fault;
  }
}

/** FencepostErrors are passed unchanged; the contract suite tests how errors are serialised. */
function overTheWire<T>(value: T): T {
  if (value instanceof FencepostError) return value;
  return JSON.parse(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? each.toString() : each))) as T;
}
