/**
 * Creates on their way to another node. Creates of one moment to the same node share a request, of all lanes and callers: a
 * request between nodes costs more than a create.
 *
 * Reads and writes: nothing. A crash here loses what was not sent, and the caller's repeat finds what was.
 */
import type { ForwardedCreate, Peers, Sending } from "../../ports/peers.ts";
import type { Ports } from "../../ports/ports.ts";
import { Gathering } from "./gather.ts";

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
