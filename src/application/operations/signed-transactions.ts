/**
 * What a caller signed by itself with a key that is managed here, and hands in without having reserved its nonce: bound
 * where it is the lane's next nonce, or one that the same key has reserved, and refused everywhere else. From then on it is a
 * tracked transaction like any other.
 */
import { routed } from "../../domain/attempts.ts";
import { bounded } from "../../domain/ceilings.ts";
import { FencepostError, forbiddenBy, otherNonce, unavailable } from "../../domain/errors.ts";
import { feeCap } from "../../domain/fees.ts";
import type { Lane } from "../../domain/lane.ts";
import { isAnothers } from "../../domain/principal.ts";
import type { SignedAttempt } from "../../domain/transaction.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { Created, SignedRequest, SubmittedSigned } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { blobCost } from "../detours/change-payload.ts";
import { asObject, parseHex, refuseUnknownKeys } from "../requests/fields.ts";
import { parseChainId } from "../requests/normalise.ts";
import { decodeGiven, type HandedIn, rejected } from "../requests/reservation.ts";
import { refuseImpossible } from "../stages/1-create/prepare.ts";
import { nonceFloor } from "../stages/2-allocate/nonce-floor.ts";
import type { Operation } from "./operation.ts";
import { bindOn, intentOf, payloadOf, type ReservationPorts } from "./reservations.ts";

export interface SignedPorts extends ReservationPorts {
  readonly store: ReservationPorts["store"] & Pick<QueryStore, "transactionAt" | "lanes">;
}

interface Signed {
  readonly lane: Lane;
  readonly owner: string | null;
  readonly handedIn: HandedIn;
}

export const submitSigned: Operation<SignedPorts, SignedRequest, Signed, Created, SubmittedSigned> = {
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
    const { txHash, rawTransaction, unsigned } = handedIn;
    const known = await heldAt(ports, lane, handedIn, owner);
    if (known !== null) return known;
    const payload = payloadOf(handedIn);
    refuseImpossible(context, payload);
    const blobs = blobCost(handedIn);
    const { gas, fees } = bounded(context.ceilings, unsigned, blobs);
    const first: SignedAttempt = { ordinal: 1, kind: "initial", txHash, gas, fees, rawTransaction };
    const attempt = routed(first, context.chain.privateEndpoints.length > 0);
    const intent = intentOf(
      ports,
      { lane, requestId: null, owner },
      { payload, gas, gasCost: gas * feeCap(fees) + blobs },
    );
    const floor = await owned.term.during(nonceFloor(ports, context, owned));
    const reason = "signed by the caller, for a nonce that it chose";
    const { nonce } = unsigned;
    const {
      fate,
      forbidden,
      next = null,
    } = await bindOn(ports, owned, { nonce, intent, attempt, reason, chosen: { floor } });
    if (forbidden !== undefined) throw forbiddenBy(forbidden);
    if (fate === "held") throw unavailable("this signer waits to be compared with the chain; nothing was done");
    // It may have been bound in the meantime, by another telling of the same bytes.
    if (fate !== "settled") return (await heldAt(ports, lane, handedIn, owner)) ?? refuse(otherNonce(nonce, next));
    return { outcome: "created", txId: intent.txId, lane, requestId: null, nonce, state: "TRACKING" };
  },
  answer: (_, { handedIn }, created) => ({ ...created, txHash: handedIn.txHash }),
};

/**
 * No live node holds the key: a stranger's, unless the signer has a lane. That one is managed all the same, and who took its
 * transaction for a stranger's would have it sent past the lane.
 */
export async function orUnserved<T>(ports: SignedPorts, request: SignedRequest, work: Promise<T>): Promise<T> {
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
async function heldAt(
  { store }: SignedPorts,
  at: Lane,
  { txHash, unsigned }: HandedIn,
  asking: string | null,
): Promise<Created | null> {
  const found = await store.transactionAt(at, unsigned.nonce);
  if (found === null || isAnothers(found.owner, asking)) return null;
  if (!found.attempts.some((attempt) => attempt.txHash === txHash)) return null;
  const { txId, lane, requestId, nonce, state } = found;
  return { outcome: "existing", txId, lane, requestId, nonce, state };
}

function refuse(error: FencepostError): never {
  throw error;
}
