/** The requests that help, by what an explanation advises and by what is wrong with a lane. */
import type { HelpCode } from "../explain/situation.ts";
import type { Address, Lane } from "../lane.ts";
import type { OfferedAction } from "./troubles.ts";

const API = "/api/v1";

const post = (action: string, label: string, path: string, body: OfferedAction["body"] = {}): OfferedAction => {
  return { action, label, method: "POST", path: `${API}${path}`, body };
};

type Offer = (tx: { readonly txId: string; readonly lane: Lane }) => readonly OfferedAction[];

const onTransaction =
  (action: string, label: string, body?: OfferedAction["body"]): Offer =>
  ({ txId }) => [post(action, label, `/tx/${txId}/${action}`, body)];

/** What no request does (funds, a node, a setting), or only with more than an operator's word, is in the sentence alone. */
const OFFERS: Readonly<Partial<Record<HelpCode, Offer>>> = {
  RESUME_LANE: ({ lane }) => [resumeLane(lane)],
  RESUME_TRANSACTION: onTransaction("resume", "Let it go on"),
  REPRICE: onTransaction("reprice", "Offer more"),
  APPROVE: ({ txId }) => [
    post("approve", "Approve", `/tx/${txId}/approve`),
    post("reject", "Reject", `/tx/${txId}/reject`),
  ],
  RESUBMIT: onTransaction("resubmit", "Send again"),
  CANCEL: onTransaction("cancel", "Cancel"),
};

export function offersFor(
  tx: { readonly txId: string; readonly lane: Lane },
  help: readonly HelpCode[],
): readonly OfferedAction[] {
  return help.flatMap((code) => OFFERS[code]?.(tx) ?? []);
}

export function resumeLane({ chainId, signer }: Lane): OfferedAction {
  return post("resumeLane", "Resume the lane", `/signers/${signer}/resume`, { chainId });
}

/** With the nonce: filled meanwhile, the same order about the transaction above would give up its payload. */
export function fillHole(headTxId: string, nonce: number): OfferedAction {
  const body = { action: "PLACEHOLDER", nonce };
  return post("resolve", "Fill it with an empty transaction", `/tx/${headTxId}/resolve`, body);
}

export function suspendLane({ chainId, signer }: Lane): OfferedAction {
  return post("suspendLane", "Suspend the lane", `/signers/${signer}/suspend`, { chainId });
}

export function stopSigner(signer: Address): OfferedAction {
  return post("killSigner", "Stop this signer", `/signers/${signer}/kill`);
}

/** With how often it was seen: what happens between the look and the word is not acknowledged by it. */
export function acknowledge(noticeId: string, times: number): OfferedAction {
  return post("acknowledge", "Acknowledge", `/notices/${noticeId}/acknowledge`, { times });
}

export function endKill(signer: Address | null): OfferedAction {
  const path = signer === null ? `${API}/kill` : `${API}/signers/${signer}/kill`;
  return { action: "endKill", label: "End the order to stop", method: "DELETE", path, body: {} };
}

export function look(label: string, path: string): OfferedAction {
  return { action: "look", label, method: "GET", path: `${API}${path}`, body: null };
}
