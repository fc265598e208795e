/**
 * Collects items that arrive in one turn of the event loop and handles them together, each with its own result. Single
 * creates then cost little more than creates in a batch. No item waits for a later turn. If many items arrive in one
 * turn, the first ones are sent while the others are still being read.
 *
 * Reads, writes: nothing. A crash here leaves nothing behind.
 */
import type { Clock } from "../../ports/clock.ts";
import type { ForwardedCreate, Peers, Sending } from "../../ports/peers.ts";
import type { Ports } from "../../ports/ports.ts";

interface Gathered<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Handles several items together. Must call `answer`, with the item's index and result, as soon as each result is
 * known.
 */
type Together<Item, Result> = (items: readonly Item[], answer: (at: number, result: Result) => void) => Promise<void>;

export class Gathering<Item, Result> {
  private readonly clock;
  private readonly together;
  private readonly enough;
  private readonly weigh;
  private gathered: Gathered<Item, Result>[] = [];
  private weight = 0;

  /**
   * `enough`: total weight at which the collected items are sent at once, without waiting for the end of the event-loop
   * turn.
   */
  constructor(
    clock: Pick<Clock, "soon">,
    together: Together<Item, Result>,
    enough: number,
    weigh: (item: Item) => number = () => 1,
  ) {
    this.clock = clock;
    this.together = together;
    this.enough = enough;
    this.weigh = weigh;
  }

  get isEmpty(): boolean {
    return this.gathered.length === 0;
  }

  add(item: Item): Promise<Result> {
    const weight = this.weigh(item);
    if (this.weight + weight > this.enough) void this.leave();
    return new Promise((resolve, reject) => {
      this.weight += weight;
      if (this.gathered.push({ item, resolve, reject }) === 1) this.clock.soon(() => void this.leave());
      if (this.weight >= this.enough) void this.leave();
    });
  }

  private async leave() {
    const leaving = this.gathered;
    if (leaving.length === 0) return;
    this.gathered = [];
    this.weight = 0;
    try {
      await this.together(
        leaving.map(({ item }) => item),
        (at, result) => leaving[at]?.resolve(result),
      );
    } catch (error) {
      for (const { reject } of leaving) reject(error);
    }
  }
}

/**
 * Batches creates that are forwarded to another node. Simultaneous creates to one node share a request, across lanes
 * and callers: a request between nodes costs more than a create.
 *
 * Reads and writes: nothing. A crash here loses creates that were not sent; for those that were, a retry by the caller
 * finds them.
 */

type Answers = Awaited<ReturnType<Peers["create"]>>;

interface Parcel {
  readonly creates: readonly ForwardedCreate[];
  readonly sending: Sending;
}

/** Maximum number of creates in one request; a larger batch is sent alone. */
const MOST_AT_ONCE = 1_000;

export type ForwardCreates = ReturnType<typeof forwardCreates>;

export function forwardCreates({ peers, clock }: Pick<Ports, "peers" | "clock">) {
  const gatherings = new Map<string, Gathering<Parcel, Answers>>();
  const open = (key: string, url: string) => {
    const carry = async (parcels: readonly Parcel[], answer: (at: number, answers: Answers) => void) => {
      const repeat = parcels.some(({ sending }) => sending.repeat);
      // Use the shortest time-out of the batch: no create waits longer than its sender allowed.
      const withinMs = Math.min(...parcels.map(({ sending }) => sending.withinMs));
      const creates = parcels.flatMap((parcel) => parcel.creates);
      const answers = await peers.create(url, creates, { repeat, withinMs }).finally(() => {
        if (gathering.isEmpty && gatherings.get(key) === gathering) gatherings.delete(key);
      });
      let from = 0;
      parcels.forEach((parcel, at) => {
        answer(at, answers.slice(from, from + parcel.creates.length));
        from += parcel.creates.length;
      });
    };
    const gathering = new Gathering(clock, carry, MOST_AT_ONCE, ({ creates }: Parcel) => creates.length);
    gatherings.set(key, gathering);
    return gathering;
  };
  return {
    /**
     * A repeated create shares a request only with creates of its own lane, for two reasons. Its first try may have got
     * no answer because another lane in the same request hangs at the owner. And the owner looks up the id of every
     * repeat first, a cost that first-time creates should not bear.
     */
    send(url: string, creates: readonly ForwardedCreate[], sending: Sending): Promise<Answers> {
      const [first] = creates;
      const key = sending.repeat ? `${url} ${first?.request.chainId} ${first?.request.signer}` : url;
      return (gatherings.get(key) ?? open(key, url)).add({ creates, sending });
    },
  };
}
