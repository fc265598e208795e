/**
 * What an operator can do against a trouble ("remedies"): the text, and the API requests that do it. All ids are filled
 * in; an operator need only add a better reason.
 */
import type { OfferedAction, Situation } from "./situation.ts";
import type { CauseCode, HelpCode } from "./table.ts";

/** One remedy: its code, the cause that it addresses, and the transaction that it concerns. */
export interface Step {
  readonly code: HelpCode;
  readonly because: CauseCode;
  /** Facts about the explained transaction, or about the transaction that it waits for. */
  readonly about: Situation;
  readonly isBlocker: boolean;
}

/**
 * Text of each remedy, shown after "What helps:". The argument `it` names the explained transaction, or the nonce that
 * it waits for.
 */
const WORDS: Readonly<Record<HelpCode, (it: string, situation: Situation) => string>> = {
  WAIT: () => "nothing needs to be done: it goes on by itself",
  LOOK_AT_BLOCKER: (_, { lane: { head } }) => `whatever helps nonce ${head?.nonce ?? "below it"} helps all behind it`,
  END_KILL: () => "find out why it was stopped, then end that order with a key that has `admin`",
  RESUME_LANE: (_, { lane }) => `resume the lane of ${lane.signer}`,
  RESUME_TRANSACTION: (it) => `let ${it} go on`,
  START_A_NODE: (_, { lane }) =>
    `start a node that holds the key of ${lane.signer} and reaches its chain; one that runs already takes over by itself`,
  CHECK_RPC: () => "check the chain's endpoints; several can be configured, and failing ones are passed over",
  CHECK_SIGNER: (_, { lane }) =>
    `check the service that holds the key of ${lane.signer}, and what this node may do there; it is asked again by itself`,
  FUND_SIGNER: (_, { lane }) => `send funds to ${lane.signer}; it goes on by itself once they are there`,
  REPRICE: (it) => `offer more for ${it}`,
  RAISE_CEILING: () => "raise the ceiling that is named, or wait until the market is below it",
  APPROVE: (it) => `have ${it} approved or rejected by a key with \`approve\` that did not make it`,
  RAISE_LIMIT: () => "raise the limit that is named in the policies; one by the hour or the day also ends with it",
  RESUBMIT: (it) => `send ${it} again now`,
  DISCLOSE: (it) => `give ${it} to the public endpoints too; it cannot be made private again`,
  CANCEL: (it) => `give ${it} up safely: the nonce is used without effect`,
  REPLACE: (it, { transaction }) => `replace what ${it} does (POST /api/v1/tx/${transaction.txId}/replace)`,
  FILL_HOLE: (_, { lane: { hole } }) =>
    `fill nonce ${hole?.nonce ?? "below"} with a transaction without effect; FENCEPOST_HOLE_POLICY=heal does so by itself`,
  USE_NONCE_ELSEWHERE: (_, { lane: { hole, signer }, transaction: { nonce } }) =>
    `have the chain node, which holds the key of ${signer}, send another transaction at nonce ${hole?.nonce ?? nonce}`,
  USE_RESERVATION: (_, { lane: { hole } }) =>
    `let the caller that reserved nonce ${hole?.nonce ?? "below"} hand in what it signed, name its hash, or release it; past its time it is freed by itself`,
  SEND_ANEW: () => "send it again under a new request id, once you know why it failed",
  PROTECT_KEY: (_, { lane }) => `find out who else signs for ${lane.signer}: two users of one key race for its nonces`,
};

export function inWords(step: Step): string {
  return WORDS[step.code](nameOf(step), step.about);
}

function nameOf({ about: { transaction }, isBlocker }: Step) {
  return isBlocker && transaction.nonce !== null ? `nonce ${transaction.nonce}` : "it";
}

/** What a request of a remedy acts on: a transaction, lane, nonce gap or notice. */
interface Target {
  readonly txId?: string | null;
  readonly chainId?: number | null;
  readonly signer?: string | null;
  /** The nonce gap, and the transaction above it that waits for it. */
  readonly hole?: { readonly nonce: number; readonly txId: string } | null;
  /** True if the kill in force is for this signer alone, false if it is for all signers. */
  readonly isOwnKill?: boolean;
  readonly notice?: { readonly noticeId: string; readonly times: number };
  readonly subscriberId?: string;
  readonly signatureId?: string;
}

/** One API request that helps against a trouble, as shown in a row of the attention list. */
export interface RowRequest extends Pick<OfferedAction, "label" | "path"> {
  readonly action: string;
  readonly method: "POST" | "DELETE" | "GET";
  /** Body of the request without the reason, which the operator adds. Null: the request has no body. */
  readonly body: Readonly<Record<string, string | number | boolean>> | null;
}

type Request = RowRequest & Pick<OfferedAction, "scope">;

/** Requests that only the attention list offers, not the explanation of a transaction. */
type RowOffer =
  | "SUSPEND_LANE"
  | "STOP_SIGNER"
  | "ACKNOWLEDGE"
  | "LOOK_AT_NODES"
  | "LOOK_AT_WEBHOOK"
  | "RESUME_WEBHOOK"
  | "PAUSE_WEBHOOK"
  | "DECIDE_SIGNATURE";

/**
 * API requests for each remedy. A remedy that needs more input than a reason, such as another payload, has none. Nor
 * have remedies such as adding funds or starting a node.
 */
const REQUESTS: Partial<Readonly<Record<HelpCode | RowOffer, (of: Target, it: string) => readonly Request[]>>> = {
  END_KILL: ({ signer, isOwnKill = false }) => {
    const label = isOwnKill ? "End the stop of this signer" : "End the stop of everything";
    const path = isOwnKill ? `/signers/${signer}/kill` : "/kill";
    return [{ ...request("endKill", label, path), method: "DELETE", scope: "admin" }];
  },
  RESUME_LANE: (of) => [ofLane(of, "resume", "Resume the lane")],
  SUSPEND_LANE: (of) => [ofLane(of, "suspend", "Suspend the lane")],
  STOP_SIGNER: ({ signer }) => [request("killSigner", "Stop this signer", `/signers/${signer}/kill`)],
  RESUME_TRANSACTION: (of, it) => [ofTransaction(of, "resume", `Let ${it} go on`)],
  REPRICE: (of, it) => [ofTransaction(of, "reprice", `Offer more for ${it}`)],
  RESUBMIT: (of, it) => [ofTransaction(of, "resubmit", `Send ${it} again`)],
  DISCLOSE: (of, it) => [
    { ...ofTransaction(of, "resubmit", `Send ${it} to public endpoints too`), body: { disclose: true } },
  ],
  CANCEL: (of, it) => [ofTransaction(of, "cancel", `Cancel ${it}`)],
  APPROVE: (of, it) => [
    { ...ofTransaction(of, "approve", `Approve ${it}`), scope: "approve" },
    { ...ofTransaction(of, "reject", `Reject ${it}`), scope: "approve" },
  ],
  // The request names the nonce of the gap. If the gap was filled meanwhile, a request without the nonce would discard
  // the payload of the transaction above it.
  FILL_HOLE: ({ hole }) => {
    if (!hole) return [];
    const { nonce, txId } = hole;
    return [request("resolve", `Fill nonce ${nonce}`, `/tx/${txId}/resolve`, { action: "PLACEHOLDER", nonce })];
  },
  // The request includes the number of events that the operator has seen, so that later events are not acknowledged
  // with them.
  ACKNOWLEDGE: ({ notice }) =>
    notice
      ? [request("acknowledge", "Acknowledge", `/notices/${notice.noticeId}/acknowledge`, { times: notice.times })]
      : [],
  RESUME_WEBHOOK: ({ subscriberId }) => [
    request("resumeDeliveries", "Resume the webhook", `/webhooks/${subscriberId}/resume`),
  ],
  PAUSE_WEBHOOK: ({ subscriberId }) => [
    request("pauseDeliveries", "Pause the webhook", `/webhooks/${subscriberId}/pause`),
  ],
  DECIDE_SIGNATURE: ({ signatureId }) => [
    { ...request("allowMessage", "Approve it", `/signatures/${signatureId}/approve`), scope: "approve" },
    { ...request("refuseMessage", "Reject it", `/signatures/${signatureId}/reject`), scope: "approve" },
  ],
  LOOK_AT_WEBHOOK: ({ subscriberId }) => [reading("Look at the webhook", `/webhooks/${subscriberId}`)],
  LOOK_AT_NODES: () => [reading("Look at the nodes", "/nodes")],
};

function request(action: string, label: string, path: string, body: NonNullable<Request["body"]> = {}): Request {
  return { action, label, method: "POST", path: `/api/v1${path}`, body, scope: "operate" };
}

function reading(label: string, path: string): Request {
  return { ...request("look", label, path), method: "GET", body: null };
}

function ofTransaction({ txId }: Target, action: string, label: string): Request {
  return request(action, label, `/tx/${txId}/${action}`);
}

function ofLane({ signer, chainId }: Target, action: "resume" | "suspend", label: string): Request {
  return request(`${action}Lane`, label, `/signers/${signer}/${action}`, { chainId: Number(chainId) });
}

/**
 * The API requests of a remedy, as the explanation of a transaction shows them: with a reason, and the scope that an
 * API key needs.
 */
export function requestsOf(step: Step): readonly OfferedAction[] {
  const { code, because } = step;
  const { transaction, lane, chain } = step.about;
  const { filling, nonce = 0 } = lane.hole ?? {};
  const target: Target = {
    txId: transaction.txId,
    signer: lane.signer,
    chainId: chain.chainId,
    hole: filling?.by === "action" ? { nonce, txId: filling.txId } : null,
    isOwnKill: lane.killed !== null && lane.killed.signer !== null,
  };
  const made = REQUESTS[code]?.(target, nameOf(step)) ?? [];
  return made.map(
    ({ body, ...rest }) => ({ ...rest, code, body: { reason: `explain: ${because}`, ...body } }) as OfferedAction,
  );
}

/** The API requests of these remedies, as a row of the attention list shows them. */
export function offersFor(target: Target, codes: readonly (HelpCode | RowOffer)[]): readonly RowRequest[] {
  return codes.flatMap((code) => REQUESTS[code]?.(target, "it") ?? []).map(({ scope: _, ...rest }) => rest);
}
