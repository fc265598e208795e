/**
 * Items that arrive in one turn of the event loop are handled together, each with its own result: a single create then costs
 * little more than one of a batch. No item waits for more to come; in a turn that brings many, the first of them leave while
 * the others are still being read.
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

/** Answers each item by its place, as soon as its result is known. */
type Together<Item, Result> = (items: readonly Item[], answer: (at: number, result: Result) => void) => Promise<void>;

export class Gathering<Item, Result> {
  private readonly clock;
  private readonly together;
  private readonly enough;
  private readonly weigh;
  private gathered: Gathered<Item, Result>[] = [];
  private weight = 0;

  /** `enough`: items of this weight leave at once. */
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
 * Creates on their way to another node. Creates of one moment to the same node share a request, of all lanes and callers: a
 * request between nodes costs more than a create.
 *
 * Reads and writes: nothing. A crash here loses what was not sent, and the caller's repeat finds what was.
 */

type Answers = Awaited<ReturnType<Peers["create"]>>;

interface Parcel {
  readonly creates: readonly ForwardedCreate[];
  readonly sending: Sending;
}

/** Creates of one request; a larger parcel travels alone. */
const MOST_AT_ONCE = 1_000;

export type ForwardCreates = ReturnType<typeof forwardCreates>;

export function forwardCreates({ peers, clock }: Pick<Ports, "peers" | "clock">) {
  const gatherings = new Map<string, Gathering<Parcel, Answers>>();
  const open = (key: string, url: string) => {
    const carry = async (parcels: readonly Parcel[], answer: (at: number, answers: Answers) => void) => {
      const repeat = parcels.some(({ sending }) => sending.repeat);
      // The shortest time of all: no create waits for longer than its sender allowed.
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
     * A repeated create shares a request with its own lane alone: another lane that hangs at the owner may be why no answer
     * came. The owner looks for its id first, too, which costs time that creates sent for the first time should not pay.
     */
    send(url: string, creates: readonly ForwardedCreate[], sending: Sending): Promise<Answers> {
      const [first] = creates;
      const key = sending.repeat ? `${url} ${first?.request.chainId} ${first?.request.signer}` : url;
      return (gatherings.get(key) ?? open(key, url)).add({ creates, sending });
    },
  };
}
