/**
 * What helps, in words, and the requests that do it. Every id is a real one: whoever reads it, or a page that makes a button
 * of it, has nothing to fill in but a better reason.
 */
import type { CauseCode, HelpCode, OfferedAction, Situation } from "./situation.ts";

/** One thing that helps: which, because of what, and whom. */
export interface Step {
  readonly code: HelpCode;
  readonly because: CauseCode;
  /** The transaction itself, or the one that it waits for. */
  readonly about: Situation;
  readonly isBlocker: boolean;
}

/** In words that follow "What helps:". `it` is the transaction that was asked about, or the nonce that it waits for. */
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

export function inWords({ code, about, isBlocker }: Step): string {
  const { nonce } = about.transaction;
  return WORDS[code](isBlocker && nonce !== null ? `nonce ${nonce}` : "it", about);
}

type Request = Omit<OfferedAction, "code" | "body"> & {
  readonly body?: Readonly<Record<string, string | number | boolean>>;
};

/** Nothing is offered here that needs more than a reason: another payload, say, is for its caller to write. */
const REQUESTS: Partial<Readonly<Record<HelpCode, (situation: Situation, it: string) => readonly Request[]>>> = {
  END_KILL: ({ lane: { killed, signer } }) => {
    const isOfSigner = killed !== null && killed.signer !== null;
    const path = isOfSigner ? `/api/v1/signers/${signer}/kill` : "/api/v1/kill";
    const label = isOfSigner ? "End the stop of this signer" : "End the stop of everything";
    return [{ action: "endKill", label, method: "DELETE", path, scope: "admin" }];
  },
  RESUME_LANE: ({ lane: { signer }, chain: { chainId } }) => {
    const path = `/api/v1/signers/${signer}/resume`;
    const body = { chainId };
    return [{ action: "resumeLane", label: "Resume the lane", method: "POST", path, body, scope: "operate" }];
  },
  RESUME_TRANSACTION: (situation, it) => [order(situation, "resume", `Let ${it} go on`)],
  REPRICE: (situation, it) => [order(situation, "reprice", `Offer more for ${it}`)],
  RESUBMIT: (situation, it) => [order(situation, "resubmit", `Send ${it} again`)],
  DISCLOSE: (situation, it) => [
    { ...order(situation, "resubmit", `Send ${it} to public endpoints too`), body: { disclose: true } },
  ],
  CANCEL: (situation, it) => [order(situation, "cancel", `Cancel ${it}`)],
  APPROVE: (situation, it) => [
    { ...order(situation, "approve", `Approve ${it}`), scope: "approve" },
    { ...order(situation, "reject", `Reject ${it}`), scope: "approve" },
  ],
  FILL_HOLE: ({ lane: { hole } }) => {
    if (hole === null || hole.filling.by !== "order") return [];
    const path = `/api/v1/tx/${hole.filling.txId}/resolve`;
    // With the nonce: filled meanwhile, the same order about the transaction above would give up its payload.
    const body = { action: "PLACEHOLDER", nonce: hole.nonce };
    return [{ action: "resolve", label: `Fill nonce ${hole.nonce}`, method: "POST", path, body, scope: "operate" }];
  },
};

export function requestsOf({ code, because, about, isBlocker }: Step): readonly OfferedAction[] {
  const { nonce } = about.transaction;
  const made = REQUESTS[code]?.(about, isBlocker && nonce !== null ? `nonce ${nonce}` : "it") ?? [];
  return made.map(({ body, ...request }) => ({ ...request, code, body: { reason: `explain: ${because}`, ...body } }));
}

function order(
  { transaction: { txId } }: Situation,
  action: "resume" | "reprice" | "resubmit" | "cancel" | "approve" | "reject",
  label: string,
): Request {
  return { action, label, method: "POST", path: `/api/v1/tx/${txId}/${action}`, scope: "operate" };
}
