/**
 * Creates on their way to other nodes. Those of one moment to the same node travel together, of all lanes and
 * callers: a request between nodes costs more than a create.
 *
 * Reads and writes: nothing. A crash here loses what was not sent, and the caller's repeat finds what was.
 */
import type { FencepostError } from "../../domain/errors.ts";
import type { ForwardedAnswer, ForwardedCreate, Telling } from "../../ports/peers.ts";
import type { Ports } from "../../ports/ports.ts";

type OutboxPorts = Pick<Ports, "peers" | "clock">;
type Answers = readonly (ForwardedAnswer | FencepostError)[];

interface Parcel {
  readonly creates: readonly ForwardedCreate[];
  readonly telling: Telling;
  resolve(answers: Answers): void;
  reject(error: unknown): void;
}

/** What one request may hold; a larger parcel travels alone. */
const MOST_AT_ONCE = 1_000;

export class Outbox {
  private readonly ports: OutboxPorts;
  private readonly waiting = new Map<string, Parcel[]>();

  constructor(ports: OutboxPorts) {
    this.ports = ports;
  }

  send(url: string, creates: readonly ForwardedCreate[], telling: Telling): Promise<Answers> {
    return new Promise((resolve, reject) => {
      const parcel = { creates, telling, resolve, reject };
      const key = telling.repeat ? `${url} ${laneOf(creates)}` : url;
      const parcels = this.waiting.get(key);
      if (parcels !== undefined) {
        parcels.push(parcel);
        return;
      }
      this.waiting.set(key, [parcel]);
      this.ports.clock.after(0, () => this.leave(key, url));
    });
  }

  private leave(key: string, url: string): void {
    const parcels = this.waiting.get(key) ?? [];
    this.waiting.delete(key);
    let together: Parcel[] = [];
    let count = 0;
    for (const parcel of parcels) {
      if (count > 0 && count + parcel.creates.length > MOST_AT_ONCE) {
        void this.carry(url, together);
        together = [];
        count = 0;
      }
      together.push(parcel);
      count += parcel.creates.length;
    }
    void this.carry(url, together);
  }

  private async carry(url: string, parcels: readonly Parcel[]): Promise<void> {
    const creates = parcels.flatMap((parcel) => parcel.creates);
    const repeat = parcels.some(({ telling }) => telling.repeat);
    // The most hurried decides: none of them may wait for longer than it said.
    const withinMs = Math.min(...parcels.map(({ telling }) => telling.withinMs));
    try {
      const answers = await this.ports.peers.create(url, creates, { repeat, withinMs });
      let from = 0;
      for (const parcel of parcels) {
        parcel.resolve(answers.slice(from, from + parcel.creates.length));
        from += parcel.creates.length;
      }
    } catch (error) {
      for (const parcel of parcels) parcel.reject(error);
    }
  }
}

/**
 * A repeated create travels in a parcel of its own lane: another lane that hangs at the owner may be why no answer came.
 * The owner looks for its id first, too, which costs time that creates sent for the first time should not pay.
 */
function laneOf([first]: readonly ForwardedCreate[]): string {
  return `${first?.request.chainId} ${first?.request.signer}`;
}
