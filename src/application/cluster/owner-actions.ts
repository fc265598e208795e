/**
 * Actions on a lane, asked of any node: done by the lane's owner. They take the same way as a create (route.ts), with one
 * difference: after no answer they are not sent again. Not every action has an id that identifies its repeat, so the outcome
 * is unknown, and the operator looks first.
 *
 * Reads: membership. Writes: nothing itself; an action writes under the fence of the lane it is given. A crash leaves what
 * the owner committed.
 */
import { FencepostError, outcomeUnknown } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { LaneAnswer, LaneRequest, Peers } from "../../ports/peers.ts";
import { BetweenOwners } from "../lane/between-owners.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { PendingRequests } from "./pending-requests.ts";
import type { Result, Router } from "./route.ts";

const UNANSWERED =
  "the node that acts for this signer did not say whether this was done; look whether it was before you repeat it";

/** Throws a FencepostError for the caller; its answer must survive JSON. */
export type OwnerAction = (lane: OwnedLane, request: LaneRequest) => Promise<unknown>;

interface OwnerActionPorts {
  readonly router: Pick<Router, "deliver">;
  readonly peers: Pick<Peers, "act">;
  readonly lanes: { own(lane: Lane): Promise<OwnedLane> };
  readonly requests: Pick<PendingRequests, "ask">;
}

export class OwnerActions {
  private readonly ports;
  private readonly actions = new Map<string, OwnerAction>();

  constructor(ports: OwnerActionPorts) {
    this.ports = ports;
  }

  register(name: string, action: OwnerAction): void {
    if (this.actions.has(name)) throw new Error(`${name} is registered already`);
    this.actions.set(name, action);
  }

  /** Throws the owner's refusal. If this node is the owner, `act` does it: absent, the registered action. */
  async forwardToOwner(lane: Lane, request: LaneRequest, act?: OwnerAction): Promise<unknown> {
    const { router, peers, requests } = this.ports;
    const [result] = await router.deliver<LaneAnswer>({
      lane,
      items: 1,
      repeatable: false,
      here: async () => [await this.act(lane, request, act)],
      at: async (url, _, { withinMs }) => [await peers.act(url, lane, { ...request, withinMs })],
      enqueue: async () => [await requests.ask(lane, request)],
      unknown: () => outcomeUnknown(UNANSWERED),
    });
    if (result instanceof FencepostError) throw result;
    return (result as LaneAnswer).answer;
  }

  /** Asked by another node: done here or refused, but never forwarded again. */
  async receive(lane: Lane, request: LaneRequest): Promise<Result<LaneAnswer>> {
    const result = await this.act(lane, request);
    return result instanceof BetweenOwners ? result.toPeer() : result;
  }

  private async act(lane: Lane, request: LaneRequest, given?: OwnerAction): Promise<Result<LaneAnswer>> {
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
