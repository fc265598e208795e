import type { FencepostError } from "../../src/domain/errors.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { type ForwardedAnswer, type ForwardedCreate, type Peers, PeerUnreachable } from "../../src/ports/peers.ts";

type Answers = readonly (ForwardedAnswer | FencepostError)[];
type Receive = (creates: readonly ForwardedCreate[], repeat: boolean) => Promise<Answers>;
export type PeerFault = "refused" | "lostRequest" | "lostReply";

/** The wires between nodes of one process. A node that hung up refuses; a mute one hears nothing and says nothing;
 * single calls can be lost on either way. */
export class MemoryNetwork {
  readonly forwards: { readonly to: string; readonly count: number; readonly repeat: boolean }[] = [];
  private readonly clock: Clock;
  private readonly mute = new Set<string>();
  private readonly nodes = new Map<string, Receive>();
  private readonly faults: { readonly fault: PeerFault; left: number }[] = [];

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** From now on whatever is sent there is met with silence. */
  silence(url: string): void {
    this.mute.add(url);
  }

  join(url: string, receive: Receive): void {
    this.nodes.set(url, receive);
  }

  hangUp(url: string): void {
    this.nodes.delete(url);
  }

  inject(fault: PeerFault, times = 1): void {
    this.faults.push({ fault, left: times });
  }

  connect(): Peers {
    return {
      create: async (url, creates, { repeat, withinMs }) => {
        this.forwards.push({ to: url, count: creates.length, repeat });
        const receive = this.nodes.get(url);
        const fault = this.strike();
        if (receive === undefined || fault === "refused") throw new PeerUnreachable(`${url} refuses`, true);
        if (fault === "lostRequest") throw new PeerUnreachable(`no answer from ${url}`, false);
        const digits = (_: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);
        const wire = JSON.parse(JSON.stringify(creates, digits)) as readonly ForwardedCreate[];
        const answers = await this.within(
          withinMs,
          this.mute.has(url) ? new Promise<Answers>(() => undefined) : receive(wire, repeat),
        );
        if (answers === null) throw new PeerUnreachable(`no answer from ${url}`, false);
        if (fault === "lostReply" || !this.nodes.has(url)) throw new PeerUnreachable(`no answer from ${url}`, false);
        return answers;
      },
      close: async () => undefined,
    };
  }

  private async within<T>(ms: number, work: Promise<T>): Promise<T | null> {
    const answered = new AbortController();
    const silence = this.clock.sleep(ms, answered.signal).then(
      () => null,
      () => null,
    );
    try {
      return await Promise.race([work, silence]);
    } finally {
      answered.abort();
    }
  }

  private strike(): PeerFault | null {
    const first = this.faults[0];
    if (first === undefined) return null;
    if (--first.left <= 0) this.faults.shift();
    return first.fault;
  }
}
