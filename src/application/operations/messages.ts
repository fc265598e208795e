/**
 * Signatures of messages under policy. The lane's owner commits what is to be signed, with its asker and the rule that
 * allows it, before the key holder is asked (domain/ledger/messages.ts). Whatever stops a send stops a signature: it is
 * asked before anything is committed, right before the key holder is asked, and again before the answer leaves.
 *
 * Reads: the requested signature. Writes: it, what its rule has counted, and the signature. A crash after the first
 * commit leaves it ALLOWED: a repeat of the request has the same digest signed, and is not counted again. Both commits
 * judge the message by the policy in force, so a signature leaves only if the policy allows it when it is stored.
 */
import {
  DatabaseSilent,
  FencepostError,
  forbiddenBy,
  invalid,
  outcomeUnknown,
  unavailable,
} from "../../domain/errors.ts";
import { anothersRequestId } from "../../domain/keys/principal.ts";
import type { Hash, Hex, Lane } from "../../domain/lane.ts";
import type { AskedSignature, SignatureRecord, SignatureState } from "../../domain/messages/record.ts";
import { type MessageEvent, type MessageResult, OutcomeUnknown } from "../../ports/lane-store.ts";
import { SignerAway, SigningRefused } from "../../ports/signer.ts";
import type { DecideSignatureRequest, SignatureView, SignMessageRequest } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { underNextTerm } from "../lane/between-owners.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { TermOver } from "../lane/term.ts";
import { signature, signatureRecord } from "../queries/signatures.ts";
import { parseReason } from "../requests/action.ts";
import { asObject, refuseUnknownKeys } from "../requests/fields.ts";
import { parseSignMessage } from "../requests/message.ts";
import type { NormalisePorts } from "../requests/normalise.ts";
import type { Offer, Operation, OwnerPorts } from "./operation.ts";

export interface MessagePorts extends CallPorts, OwnerPorts {
  readonly intents: NormalisePorts;
}

export function messageCalls(offer: Offer<MessagePorts>) {
  return {
    /** Has a message signed if a policy allows it; a repeat of the request id gets the same signature. */
    requestSignature: offer("requestSignature", requestSignature),
    /** Approves or rejects a requested signature that waits for a second API key. */
    decideSignature: offer("decideSignature", decideSignature),
  };
}

/** Answer to a request for a signature, as JSON. */
export interface SignedMessage {
  readonly signatureId: string;
  readonly lane: Lane;
  readonly requestId: string;
  readonly kind: "personal" | "typedData";
  readonly digest: Hash;
  /** Null while it waits for approval. */
  readonly signature: Hex | null;
  readonly rule: string;
  readonly state: SignatureState;
  readonly at: string;
  readonly expiresAt: string | null;
}

interface Asked extends AskedSignature {
  readonly lane: Lane;
}

const requestSignature: Operation<MessagePorts, SignMessageRequest, Asked, SignedMessage, SignedMessage> = {
  laneOf(ports, request, owner) {
    const { lane, requestId, message } = parseSignMessage(ports.intents, request);
    const signatureId = ports.entropy.uuid();
    const named = requestId ?? signatureId;
    return { lane, signatureId, requestId: named, owner, message, digest: ports.codec.messageDigest(message) };
  },
  // The request id makes a forwarded request repeatable, and the chain id may mean another chain on the owner's node.
  travels: (request, { lane, requestId }) => ({ ...request, chainId: lane.chainId, requestId }),
  repeatable: () => true,
  perform: (ports, lane, asked) => underNextTerm(ports.lanes, lane, (owned) => signOn(ports, owned, asked)),
};

async function signOn(ports: MessagePorts, lane: OwnedLane, { lane: _, ...asked }: Asked): Promise<SignedMessage> {
  const count = (result: SignResult, rule: string | null) => report(ports, lane, { asked, result, rule });
  try {
    refuseStopped(lane);
    const result = await written(lane.term.write({ kind: "signMessage", asked }));
    const { record, isNew } = keptOf(result, asked.requestId);
    await ports.failpoint("message.committed");
    refuseEnded(record);
    if (record.state === "AWAITING_APPROVAL") {
      if (isNew) count("awaiting", record.rule);
      return answerOf(record);
    }
    const signed = record.state === "SIGNED" ? record : await signRecord(ports, lane, record);
    refuseStopped(lane);
    count(record.state === "SIGNED" ? "repeated" : "signed", record.rule);
    return answerOf(signed);
  } catch (error) {
    if (error instanceof FencepostError && error.code === "UNAVAILABLE") count("stopped", null);
    if (error instanceof FencepostError && error.code === "FORBIDDEN") count("refused", ruleOf(error));
    throw error;
  }
}

/** Has the committed digest signed, and stores the signature. Of two that are made at once, the stored one counts. */
async function signRecord(ports: MessagePorts, lane: OwnedLane, record: SignatureRecord): Promise<SignatureRecord> {
  const { message, digest, requestId } = record;
  const { chainId, signer } = lane.lane;
  const holder = ports.signer;
  refuseStopped(lane);
  const items = [{ chainId, message, digest }];
  const [made] = await lane.term
    .send(async () => holder.signMessages(signer, items, lane.fence.token))
    .catch(refusedBy);
  if (made === undefined) throw unavailable(`the holder of the key returned no signature; ${REPEAT}`);
  await ports.failpoint("message.signed");
  refuseStopped(lane);
  const settled = await written(
    lane.term.write({ kind: "settleMessage", requestId, event: { kind: "sign", signature: made } }),
  );
  await ports.failpoint("message.stored");
  return keptOf(settled, requestId).record;
}

const REPEAT = "repeat it with the same requestId";

function refusedBy(error: unknown): never {
  if (error instanceof SigningRefused) throw forbiddenBy({ rule: "signer.keyHolder", detail: error.message });
  if (error instanceof SignerAway) throw unavailable(`the holder of the key does not answer; ${REPEAT}`, error);
  throw error;
}

/** Throws if a kill or a suspension stops the signer. The end of the lease stops the writes and the key holder. */
function refuseStopped(lane: OwnedLane): void {
  if (lane.term.isKilled) throw stopped("a kill is in force for it");
  if (lane.suspended) throw stopped("it is suspended, or waits to be compared with the chain");
}

function stopped(why: string): FencepostError {
  return unavailable(`the signer signs nothing now: ${why}; ${REPEAT} afterwards`);
}

function keptOf(result: MessageResult, requestId: string): Extract<MessageResult, { readonly result: "kept" }> {
  switch (result.result) {
    case "kept":
      return result;
    case "forbidden":
      throw forbiddenBy(result);
    case "held":
      throw stopped("it waits to be compared with the chain");
    case "spent":
      throw reused(`request id ${requestId} belongs to a signature that is kept no more; nothing was signed`);
    case "reused":
      throw result.another
        ? anothersRequestId(requestId)
        : reused(`request id ${requestId} belongs to another message`);
    case "conflict":
      throw conflict(result.record);
  }
}

function reused(detail: string): FencepostError {
  return new FencepostError("REQUEST_ID_REUSED", detail);
}

function conflict(record: SignatureRecord | null): FencepostError {
  const detail = record === null ? "there is no such request" : `it is ${record.state}${decidedBy(record)}`;
  return new FencepostError("CONFLICT", detail);
}

function decidedBy({ decision }: SignatureRecord) {
  return decision === null ? "" : ` by ${decision.actor}: ${decision.reason}`;
}

function refuseEnded(record: SignatureRecord): void {
  if (record.state === "REJECTED" || record.state === "EXPIRED") throw conflict(record);
}

/** Error of a failed write. The request may be repeated in any case: what was committed is found by its request id. */
function written(write: Promise<MessageResult>): Promise<MessageResult> {
  return write.catch((error: unknown) => {
    if (error instanceof TermOver) throw error;
    if (!(error instanceof OutcomeUnknown)) throw new DatabaseSilent(`nothing was signed; ${REPEAT}`, error);
    throw outcomeUnknown(`the database did not say whether this was kept; ${REPEAT}`, { cause: error });
  });
}

function answerOf({
  message,
  owner: _,
  amount: __,
  decision: ___,
  signedAt,
  ...record
}: SignatureRecord): SignedMessage {
  const { signatureId, lane, requestId, digest, signature: made, rule, state, createdAt, expiresAt } = record;
  const at = (signedAt ?? createdAt).toISOString();
  const until = expiresAt === null ? null : expiresAt.toISOString();
  return {
    signatureId,
    lane,
    requestId,
    kind: message.kind,
    digest,
    signature: made,
    rule,
    state,
    at,
    expiresAt: until,
  };
}

const ruleOf = ({ extras }: FencepostError) => (typeof extras.rule === "string" ? extras.rule : null);

type SignResult = "signed" | "repeated" | "awaiting" | "refused" | "stopped";

interface Reported {
  readonly asked: AskedSignature;
  readonly result: SignResult;
  readonly rule: string | null;
}

function report({ telemetry }: MessagePorts, { lane, fence: { token } }: OwnedLane, { asked, result, rule }: Reported) {
  const { signatureId, requestId, owner, message } = asked;
  const what = { signatureId, requestId, owner, kind: message.kind, rule, result };
  telemetry.emit({ type: "message.answered", lane, token, ...what });
}

/** A decision of a second API key about a requested signature. */

interface Decided {
  readonly lane: Lane;
  readonly signatureId: string;
  readonly requestId: string;
  readonly event: Exclude<MessageEvent, { readonly kind: "sign" }>;
}

const DONE: Readonly<Record<Decided["event"]["kind"], readonly SignatureState[]>> = {
  approve: ["ALLOWED", "SIGNED"],
  reject: ["REJECTED"],
};

const decideSignature: Operation<MessagePorts, DecideSignatureRequest, Decided, void, SignatureView> = {
  async laneOf(ports, { action, signatureId, request, actor }) {
    if (action !== "approve" && action !== "reject") throw invalid("action", "must be approve or reject");
    const fields = asObject(request, "");
    refuseUnknownKeys(fields, ["reason"], "");
    const { lane, requestId } = await signatureRecord(ports, signatureId);
    const event = { kind: action, actor, reason: parseReason(fields.reason) };
    return { lane, signatureId, requestId, event };
  },
  repeatable: () => true,
  perform: (ports, lane, { requestId, event }) =>
    underNextTerm(ports.lanes, lane, async (owned) => {
      const result = await written(owned.term.write({ kind: "settleMessage", requestId, event }));
      // A repeat of the same decision finds it done.
      const isDone =
        result.result === "conflict" && result.record !== null && DONE[event.kind].includes(result.record.state);
      if (!isDone) keptOf(result, requestId);
    }),
  answer: (ports, { signatureId }) => signature(ports, signatureId),
};
