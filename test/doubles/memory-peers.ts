import type { FencepostError } from "../../src/domain/errors.ts";
import { type ForwardedAnswer, type ForwardedCreate, type Peers, PeerUnreachable } from "../../src/ports/peers.ts";

type Receive = (
  creates: readonly ForwardedCreate[],
  repeat: boolean,
) => Promise<readonly (ForwardedAnswer | FencepostError)[]>;
export type PeerFault = "refused" | "lostRequest" | "lostReply";

/** The wires between nodes of one process. A node that hung up refuses; single calls can be lost on either way. */
export class MemoryNetwork {
  readonly forwards: { readonly to: string; readonly count: number; readonly repeat: boolean }[] = [];
  private readonly nodes = new Map<string, Receive>();
  private readonly faults: { readonly fault: PeerFault; left: number }[] = [];

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
      create: async (url, creates, repeat) => {
        this.forwards.push({ to: url, count: creates.length, repeat });
        const receive = this.nodes.get(url);
        const fault = this.strike();
        if (receive === undefined || fault === "refused") throw new PeerUnreachable(`${url} refuses`, true);
        if (fault === "lostRequest") throw new PeerUnreachable(`no answer from ${url}`, false);
        const digits = (_: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);
        const wire = JSON.parse(JSON.stringify(creates, digits)) as readonly ForwardedCreate[];
        const answers = await receive(wire, repeat);
        if (fault === "lostReply" || !this.nodes.has(url)) throw new PeerUnreachable(`no answer from ${url}`, false);
        return answers;
      },
      close: async () => undefined,
    };
  }

  private strike(): PeerFault | null {
    const first = this.faults[0];
    if (first === undefined) return null;
    if (--first.left <= 0) this.faults.shift();
    return first.fault;
  }
}
