/** The requests that help, by what an explanation advises and by what is wrong with a lane. */
import type { HelpCode } from "../explain/situation.ts";
import type { Address, Lane } from "../lane.ts";
import type { OfferedAction } from "./troubles.ts";

const API = "/api/v1";

const post = (action: string, label: string, path: string, body: OfferedAction["body"] = {}): OfferedAction => {
  return { action, label, method: "POST", path: `${API}${path}`, body };
};

type Offer = (tx: { readonly txId: string; readonly lane: Lane }) => readonly OfferedAction[];

const nothing: Offer = () => [];
const onTransaction =
  (action: string, label: string, body?: OfferedAction["body"]): Offer =>
  ({ txId }) => [post(action, label, `/tx/${txId}/${action}`, body)];

/** What no request does (funds, a node, a setting) is in the sentence alone. */
const OFFERS: Readonly<Record<HelpCode, Offer>> = {
  WAIT: nothing,
  LOOK_AT_BLOCKER: nothing,
  END_KILL: ({ lane }) => [endKill(lane.signer)],
  RESUME_LANE: ({ lane }) => [resumeLane(lane)],
  RESUME_TRANSACTION: onTransaction("resume", "Let it go on"),
  START_A_NODE: nothing,
  CHECK_RPC: nothing,
  CHECK_SIGNER: nothing,
  FUND_SIGNER: nothing,
  REPRICE: onTransaction("reprice", "Offer more"),
  RAISE_CEILING: nothing,
  APPROVE: ({ txId }) => [
    post("approve", "Approve", `/tx/${txId}/approve`),
    post("reject", "Reject", `/tx/${txId}/reject`),
  ],
  RAISE_LIMIT: nothing,
  RESUBMIT: onTransaction("resubmit", "Send again"),
  CANCEL: onTransaction("cancel", "Cancel"),
  // What to put there instead is for whoever asks to say.
  REPLACE: nothing,
  FILL_HOLE: ({ txId }) => [fillHole(txId)],
  USE_RESERVATION: nothing,
  SEND_ANEW: nothing,
  PROTECT_KEY: nothing,
};

export function offersFor(
  tx: { readonly txId: string; readonly lane: Lane },
  help: readonly HelpCode[],
): readonly OfferedAction[] {
  return help.flatMap((code) => OFFERS[code](tx));
}

export function resumeLane({ chainId, signer }: Lane): OfferedAction {
  return post("resumeLane", "Resume the lane", `/signers/${signer}/resume`, { chainId });
}

export function fillHole(headTxId: string): OfferedAction {
  return post("resolve", "Fill it with an empty transaction", `/tx/${headTxId}/resolve`, { action: "PLACEHOLDER" });
}

export function endKill(signer: Address | null): OfferedAction {
  const path = signer === null ? `${API}/kill` : `${API}/signers/${signer}/kill`;
  return { action: "endKill", label: "End the order to stop", method: "DELETE", path, body: {} };
}

export function look(label: string, path: string): OfferedAction {
  return { action: "look", label, method: "GET", path: `${API}${path}`, body: null };
}
