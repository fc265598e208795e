/** Troubles that wait for a person's word, drawn from the notices that nobody acknowledged. */
import type { Lane } from "../lane.ts";
import type { Notice, NoticeEvidence } from "../notices.ts";
import { acknowledge, look, stopSigner, suspendLane } from "./offers.ts";
import { NOWHERE, type Trouble } from "./troubles.ts";

export function ofNotice(notice: Notice): Trouble {
  const { noticeId, lane, nodeId, firstSeenAt } = notice;
  const common = { ...NOWHERE, id: `notice:${noticeId}`, since: firstSeenAt };
  return lane === null ? ofVanished(notice, { ...common, nodeId }) : ofForeignUse(notice, lane, { ...common, ...lane });
}

/** The sign of a stolen key: nothing is worse, and nothing of it ends by itself. */
function ofForeignUse(
  { noticeId, times, evidence }: Notice,
  lane: Lane,
  common: Omit<Trouble, "severity" | "code" | "sentence">,
): Trouble {
  const [newest] = evidence;
  const often = times === 1 ? "" : ` It happened ${times} times; this was the last.`;
  return {
    ...common,
    ...{ severity: "CRITICAL", code: "EXTERNAL_KEY_USE", nonce: newest?.nonce ?? null, txId: newest?.txId ?? null },
    sentence: `Another program used the key of this signer: ${usedBy(newest)}.${often} If nobody here did it, the key is stolen: stop the signer and move its funds.`,
    actions: [acknowledge(noticeId, times), suspendLane(lane), stopSigner(lane.signer)],
  };
}

function usedBy(use: NoticeEvidence | undefined): string {
  const { nonce = 0, through = nonce, txHash = null } = use ?? {};
  if (txHash !== null) return `nonce ${nonce} went to ${txHash}, which was not sent from here`;
  const nonces = through === nonce ? `nonce ${nonce}` : `nonces ${nonce} to ${through}`;
  return `the chain counts ${nonces}, which nothing that was sent from here has`;
}

const EVIDENCE: Readonly<Record<string, string>> = {
  expired: "its heartbeat ran out",
  "stood-still": "its heartbeat stood still",
  "lock-gone": "its session with the database ended",
};

function ofVanished(
  { noticeId, nodeId, times, evidence }: Notice,
  common: Omit<Trouble, "severity" | "code" | "sentence">,
): Trouble {
  const [newest] = evidence;
  const { lanes = 0, why = "" } = newest ?? {};
  const held = lanes === 0 ? "no lanes" : lanes === 1 ? "one lane" : `${lanes} lanes`;
  const often = times === 1 ? "" : ` It happened ${times} times.`;
  return {
    ...common,
    ...{ severity: "ERROR", code: "NODE_VANISHED" },
    sentence: `Node ${nodeId} vanished without draining: ${EVIDENCE[why] ?? "its end was noticed"}, and it held ${held}.${often} Find out why it ended; this is over when it is back.`,
    actions: [acknowledge(noticeId, times), look("Look at the nodes", "/nodes")],
  };
}
