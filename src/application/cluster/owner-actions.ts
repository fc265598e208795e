/**
 * What an operator asks of a lane, at any node: done here where this node owns the lane or can acquire it,
 * else by the owner. The same road as a create takes, with one difference: after silence it is not told again. Not every
 * action has an id that its repeat could be recognised by, so the answer is "unknown", and the operator looks first. For an
 * owner that cannot be asked it is left in the database.
 *
 * Reads: membership. Writes: nothing itself; an action writes under the fence of the lane it is given. A crash leaves what
 * the owner committed.
 */
import { FencepostError, outcomeUnknown } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { LaneAnswer, LaneRequest, Peers } from "../../ports/peers.ts";
import { BetweenOwners } from "../lane/between-owners.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { Fate } from "./journey.ts";
import type { Router } from "./route.ts";
import type { ThroughDatabase } from "./through-database.ts";

const UNHEARD =
  "the node that acts for this signer did not say whether this was done; look whether it was before you repeat it";

/** Throws a FencepostError for the caller; what it returns must survive JSON. */
export type OwnerAction = (lane: OwnedLane, request: LaneRequest) => Promise<unknown>;

export interface OwnerActionPorts {
  /** Null: what this node cannot do itself is refused with the owner's name. */
  readonly router: Pick<Router, "run"> | null;
  readonly peers: Pick<Peers, "act">;
  readonly lanes: { own(lane: Lane): Promise<OwnedLane> };
  readonly throughDatabase: Pick<ThroughDatabase, "ask">;
  /** Whether an owner that this node found cannot be asked, and nothing was done. */
  readonly isUnasked: (fate: unknown) => boolean;
}

export class OwnerActions {
  private readonly ports: OwnerActionPorts;
  private readonly actions = new Map<string, OwnerAction>();

  constructor(ports: OwnerActionPorts) {
    this.ports = ports;
  }

  register(name: string, action: OwnerAction): void {
    if (this.actions.has(name)) throw new Error(`${name} is registered already`);
    this.actions.set(name, action);
  }

  /** Throws what the owner refused with. Where this node is the owner, `act` does it: as registered, if nothing is given. */
  async forwardToOwner(lane: Lane, request: LaneRequest, act?: OwnerAction): Promise<unknown> {
    const { router, peers } = this.ports;
    const here = (): Promise<Fate<LaneAnswer>> => this.act(lane, request, act);
    const [fate] =
      router === null
        ? [await here()]
        : await router.run<LaneAnswer>({
            lane,
            items: 1,
            repeatable: false,
            locally: async () => [await here()],
            remotely: async (url, _, { withinMs }) => [await peers.act(url, lane, { ...request, withinMs })],
            unknown: () => outcomeUnknown(UNHEARD),
          });
    const answered = this.ports.isUnasked(fate) ? await this.ports.throughDatabase.ask(lane, request) : fate;
    if (answered instanceof FencepostError) throw answered;
    return (answered as LaneAnswer).answer;
  }

  /** What another node was asked for: done here or refused, but never forwarded again. */
  async receive(lane: Lane, request: LaneRequest): Promise<Fate<LaneAnswer>> {
    const fate = await this.act(lane, request);
    return fate instanceof BetweenOwners ? fate.toPeer() : fate;
  }

  private async act(lane: Lane, request: LaneRequest, given?: OwnerAction): Promise<Fate<LaneAnswer>> {
    const act = given ?? this.actions.get(request.action);
    if (act === undefined) return notKnownYet(request.action);
    try {
      return { answer: await act(await this.ports.lanes.own(lane), request) };
    } catch (error) {
      if (error instanceof FencepostError) return error;
      throw error;
    }
  }
}

/** One version of skew: the node that was asked may be newer than the owner. */
export function notKnownYet(action: string): FencepostError {
  const detail = `the node that acts for this signer does not know "${action}" yet: upgrade it; nothing was done`;
  return new FencepostError("UNAVAILABLE", detail, { retryAfterSeconds: 1 });
}
