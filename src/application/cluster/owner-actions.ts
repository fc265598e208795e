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
import { problemFrom } from "../../domain/text/refusal.ts";
import type { BegunRequest, LeftRequestStore } from "../../ports/left-request-store.ts";
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

/** The node that sent the action may be one version newer than the owner. */
export function notKnownYet(action: string): FencepostError {
  const detail = `the node that acts for this signer does not know "${action}" yet: upgrade it; nothing was done`;
  return new FencepostError("UNAVAILABLE", detail, { retryAfterSeconds: 1 });
}

/**
 * Carries out the requests that other nodes enqueued for this one, because it has no URL (pending-requests.ts).
 *
 * Reads: waiting requests for lanes that this node owns. Writes: their answers; the requested change is written under the
 * fence of the lane, as if this node had been asked itself. Invariants: I1, I10. A crash after a request was begun leaves it
 * begun: the lane's next owner does it again if a repeat is recognised, and otherwise answers that the outcome is unknown.
 */

interface DequeuePorts {
  readonly store: Pick<LeftRequestStore, "beginRequests" | "answerRequest" | "putBackRequest">;
  readonly instanceId: () => string;
  readonly actions: Pick<OwnerActions, "receive">;
  /** Senders may look for their answers. */
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

  /** Begins every request that is there. A request waits for no other: one may take seconds. */
  async look(lanes: () => readonly { readonly lane: Lane }[]): Promise<void> {
    const { store, instanceId } = this.ports;
    const own = lanes().map(({ lane }) => lane);
    // A request that is put back meanwhile waits for the next look.
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

  /** Resolves when everything that was begun has ended. */
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
      // The database did not take the answer: the next look finds the request begun and without one.
    }
    onAnswered();
  }

  /** Without an answer the lane is not this node's any more, and its next owner begins the request, or repeats it. */
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
