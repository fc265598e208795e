/**
 * A transaction that its caller signed with a key that is managed here, without having reserved its nonce: bound if its nonce is
 * the lane's next one, or one that the same API key has reserved, and refused otherwise. From then on it is a tracked
 * transaction like any other.
 */
import { FencepostError, otherNonce, unavailable } from "../../domain/errors.ts";
import { isAnothers } from "../../domain/keys/principal.ts";
import type { Hash, Lane } from "../../domain/lane.ts";
import type { Created, SignedRequest } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { asObject, parseHex, refuseUnknownKeys } from "../requests/fields.ts";
import { parseChainId } from "../requests/normalise.ts";
import { decodeGiven, type HandedIn, rejected } from "../requests/reservation.ts";
import { existingAs } from "../stages/1-create/answer-existing.ts";
import { refuseImpossible } from "../stages/1-create/prepare.ts";
import { nonceFloor } from "../stages/2-allocate/nonce-floor.ts";
import type { Operation } from "./operation.ts";
import { bindOn, payloadOf, type ReservationPorts, submissionOf } from "./reservations.ts";

interface Signed {
  readonly lane: Lane;
  readonly owner: string | null;
  readonly handedIn: HandedIn;
}

export const submitSigned: Operation<
  ReservationPorts,
  SignedRequest,
  Signed,
  Created,
  Created & { readonly txHash: Hash }
> = {
  async laneOf({ codec, intents }, request, owner) {
    const body = asObject(request, "");
    refuseUnknownKeys(body, ["chainId", "rawTransaction"], "");
    const rawTransaction = parseHex(body.rawTransaction, "rawTransaction");
    const chainId = parseChainId(intents.chainIds, body.chainId, intents.isServedElsewhere);
    const decoded = await decodeGiven(codec, rawTransaction, (why) =>
      rejected("INVALID_INPUT", `rawTransaction ${why}`),
    );
    if (decoded.unsigned.chainId !== chainId) {
      throw rejected("INVALID_INPUT", `it is for chain ${decoded.unsigned.chainId}, asked is chain ${chainId}`);
    }
    return { lane: { chainId, signer: decoded.signer }, owner, handedIn: { ...decoded, rawTransaction } };
  },
  travels: (request, { lane }) => ({ ...request, chainId: lane.chainId }),
  // The same bytes are the same transaction.
  repeatable: () => true,
  async perform(ports, owned, { lane, owner, handedIn }) {
    const context = ports.chains.get(lane.chainId) as ChainContext;
    const known = await heldAt(ports, lane, handedIn, owner);
    if (known !== null) return known;
    refuseImpossible(context, payloadOf(handedIn));
    const submission = submissionOf(ports, { lane, requestId: null, owner }, handedIn);
    const floor = await owned.term.during(nonceFloor(ports, context, owned));
    const reason = "signed by the caller, for a nonce that it chose";
    const { nonce } = handedIn.unsigned;
    const { fate, next = null } = await bindOn(ports, owned, { nonce, ...submission, reason, chosen: { floor } });
    // It may have been bound meanwhile, by a repeat of the same bytes.
    if (fate !== "settled") return (await heldAt(ports, lane, handedIn, owner)) ?? refuse(otherNonce(nonce, next));
    return { outcome: "created", txId: submission.intent.txId, lane, requestId: null, nonce, state: "TRACKING" };
  },
  answer: (_, { handedIn }, created) => ({ ...created, txHash: handedIn.txHash }),
};

/**
 * No live node holds the key: the signer is a stranger, unless it has a lane. A transaction of a managed signer that was taken
 * for a stranger's would be sent past its lane.
 */
export async function orUnserved<T>(ports: ReservationPorts, request: SignedRequest, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof FencepostError) || error.code !== "UNKNOWN_SIGNER") throw error;
    const { lane } = await submitSigned.laneOf(ports, request, null);
    if ((await ports.store.lanes(lane.signer)).length === 0) throw error;
    throw unavailable(`no live node holds the key of ${lane.signer}; nothing was done`);
  }
}

/** The same bytes again. */
async function heldAt({ store }: ReservationPorts, at: Lane, { txHash, unsigned }: HandedIn, asking: string | null) {
  const found = await store.transactionAt(at, unsigned.nonce);
  if (found === null || isAnothers(found.owner, asking)) return null;
  return found.attempts.some((attempt) => attempt.txHash === txHash) ? existingAs(found) : null;
}

function refuse(error: FencepostError): never {
  throw error;
}
