/**
 * Actions on a lane: any node accepts the request, the lane's owner carries it out. They are routed like a create
 * (route.ts), with one difference: an action is not sent again if no answer arrives. Not every action has an id by
 * which a repeat is recognised. So the outcome is reported as unknown, and the operator must check it first.
 *
 * Reads: membership. Writes: nothing itself; an action writes under the fence of its lane. After a crash, what the
 * owner committed remains.
 */
import { FencepostError, outcomeUnknown } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import { problemFrom } from "../../domain/text/refusal.ts";
import type { BegunRequest, LeftRequestStore } from "../../ports/left-request-store.ts";
import type { LaneAnswer, LaneRequest, Peers } from "../../ports/peers.ts";
import { BetweenOwners } from "../lane/between-owners.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { PendingRequests } from "./pending-requests.ts";
import type { Result, Router } from "./route.ts";

const UNANSWERED =
  "the node that acts for this signer did not say whether this was done; look whether it was before you repeat it";

/**
 * An action that the lane's owner carries out. Throws a FencepostError for the caller; its result must be serializable
 * as JSON.
 */
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
    if (this.actions.has(name)) throw new Error(`the action ${name} is already registered`);
    this.actions.set(name, action);
  }

  /**
   * Forwards an action to the lane's owner and throws the owner's refusal. If this node is the owner, it runs `act`, or
   * the registered action if `act` is absent.
   */
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

  /** Handles an action forwarded by another node: carries it out or refuses it, but never forwards it again. */
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

/** Error for an unknown action: the node that forwarded it may be one version newer than the owner. */
export function notKnownYet(action: string): FencepostError {
  const detail = `the node that acts for this signer does not know "${action}" yet: upgrade it; nothing was done`;
  return new FencepostError("UNAVAILABLE", detail, { retryAfterSeconds: 1 });
}

/**
 * Carries out the requests that were enqueued for lanes of this node because it could not be called: it has no URL, or
 * the sender has none itself and no node carried the request out (pending-requests.ts, `isUnasked` in route.ts).
 *
 * Reads: waiting requests for lanes that this node owns. Writes: their answers; the requested change is written under
 * the fence of the lane, as for a request received directly. Invariants: I1, I10. A crash after a request was begun
 * leaves it begun: the lane's next owner repeats it if a repeat is recognised, and otherwise answers that the outcome
 * is unknown.
 */

interface DequeuePorts {
  readonly store: Pick<LeftRequestStore, "beginRequests" | "answerRequest" | "putBackRequest">;
  readonly instanceId: () => string;
  readonly actions: Pick<OwnerActions, "receive">;
  /** Called when work on a request has ended, answered or not, so that its sender looks for the answer. */
  readonly onAnswered: () => void;
}

const INTERRUPTED =
  "the process that acted for this signer ended before it said whether this was done; look whether it was before you repeat it";
const FAILED =
  "the process that acts for this signer failed at this, and may have done it; look whether it was done before you repeat it";

export class Dequeue {
  private readonly ports;
  private readonly underWay = new Map<string, Promise<void>>();

  constructor(ports: DequeuePorts) {
    this.ports = ports;
  }

  /** Begins every waiting request. Requests run independently, because one may take seconds. */
  async look(lanes: () => readonly { readonly lane: Lane }[]): Promise<void> {
    const { store, instanceId } = this.ports;
    const own = lanes().map(({ lane }) => lane);
    // Requests already under way are skipped. A request that was begun here and then returned to the queue is begun
    // again only by the next call.
    const seen = new Set(this.underWay.keys());
    for (let hasMore = own.length > 0; hasMore; ) {
      const begun = await store.beginRequests(own, instanceId(), [...seen]);
      for (const request of begun) {
        seen.add(request.leftId);
        const carried = this.carryOut(request).finally(() => this.underWay.delete(request.leftId));
        this.underWay.set(request.leftId, carried);
      }
      hasMore = begun.length > 0;
    }
  }

  /** Resolves when all requests under way have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.underWay.values());
  }

  private async carryOut(request: BegunRequest) {
    const { store, instanceId, onAnswered } = this.ports;
    const by = instanceId();
    try {
      const answer = await this.answerTo(request);
      if (answer === "nothing done") await store.putBackRequest(request.leftId, by);
      else if (answer !== "in doubt") await store.answerRequest(request.leftId, by, answer.json);
    } catch {
      // The answer could not be stored, or the request not returned to the queue. The next call of `look` finds the
      // request begun but unanswered.
    }
    onAnswered();
  }

  /**
   * Carries out one request. Returns no answer if this node has lost the lane and the lane's next owner may begin the
   * request or safely repeat it.
   */
  private async answerTo(request: BegunRequest) {
    const { lane, action, body, owner, repeatable, begunBefore } = request;
    if (begunBefore && !repeatable) return refused(outcomeUnknown(INTERRUPTED));
    try {
      const asked = { action, body: JSON.parse(body), owner, again: begunBefore };
      const result = await this.ports.actions.receive(lane, asked);
      if (!(result instanceof FencepostError)) return { json: JSON.stringify(result) };
      if (result.code !== "NOT_LEADER") return refused(result);
      if (result.extras.outcome !== "unknown" && !begunBefore) return "nothing done";
      return repeatable ? "in doubt" : refused(outcomeUnknown(INTERRUPTED));
    } catch (error) {
      return refused(error instanceof FencepostError ? error : outcomeUnknown(FAILED, { cause: error }));
    }
  }
}

function refused(error: FencepostError) {
  return { json: JSON.stringify({ problem: problemFrom(error) }) };
}
