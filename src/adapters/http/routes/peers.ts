/**
 * Routes for calls between nodes. A refusal of the whole request (401, 404, 413, 503) promises that nothing was done.
 * Once the receiver processes the creates, each has its own result, and an unexpected failure is a 500.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Created } from "../../../application/api.ts";
import { readForwardedCreate, readOwner } from "../../../application/requests/normalise.ts";
import * as wire from "../../../contract/peer-wire.ts";
import { BATCH_ITEMS_LIMIT } from "../../../contract/schemas/create.ts";
import type { Kill } from "../../../domain/cluster/kills.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import type { Address } from "../../../domain/lane.ts";
import type { Mask } from "../../../domain/text/mask.ts";
import type { ForwardedCreate, LaneRequest } from "../../../ports/peers.ts";
import { UUID } from "../exchange/declared-call.ts";
import { asObject } from "../exchange/json-body.ts";
import type { PeerReceiver } from "../exchange/options.ts";
import { problemOf } from "../exchange/problems.ts";

/** Matches an address in the internal form of lanes: lower case. */
const ADDRESS = /^0x[0-9a-f]{40}$/;

export function peerRoutes(app: FastifyInstance, peer: PeerReceiver): void {
  const options = (route: string, urgent: { readonly urgent?: true } = {}) => ({
    bodyLimit: wire.PEER_BODY_LIMIT_BYTES,
    config: { peer: true as const, ...urgent },
    // Authenticate the calling node before the body is read, so that unauthenticated callers cannot send megabytes.
    onRequest: async (request: FastifyRequest) => {
      request.checkBody = await peer.admit(route, request.headers.authorization);
    },
  });
  app.post(wire.PEER_CREATES_PATH, options(wire.PEER_CREATES_PATH), async (request): Promise<wire.PeerResults> => {
    const { creates, repeat } = readCreates(request.body);
    return { results: (await receive(peer, creates, repeat)).map((result) => resultView(result, app.mask)) };
  });
  app.post(wire.PEER_ACTIONS_PATH, options(wire.PEER_ACTIONS_PATH), async (request): Promise<wire.PeerActionResult> => {
    const { lane, ...asked } = readAction(request.body);
    const result = await wholly(() => peer.act(lane, asked));
    return { result: result instanceof FencepostError ? problemOf(result, app.mask) : result };
  });
  app.post(wire.PEER_KILLS_PATH, options(wire.PEER_KILLS_PATH, { urgent: true }), async (request) => {
    await peer.kill(readKill(request.body));
    return {};
  });
}

function receive(peer: PeerReceiver, creates: readonly ForwardedCreate[], repeat: boolean) {
  return wholly(async () => {
    const results = await peer.create(creates, repeat);
    if (results.length === creates.length) return results;
    throw new Error(`${creates.length} forwarded create requests got ${results.length} results`);
  });
}

async function wholly<T>(work: () => Promise<T>) {
  try {
    return await work();
  } catch (cause) {
    // Wrap the error: an UNAVAILABLE from here would mean to the calling node that nothing was done.
    throw new Error("an unexpected error occurred while a request from another node was processed", { cause });
  }
}

function readAction(value: unknown): LaneRequest & Pick<wire.PeerAction, "lane"> {
  const { lane, action, body, owner } = asObject(value);
  const { chainId, signer } = asObject(lane, "lane");
  if (typeof action !== "string") throw invalid("action", "must be text");
  if (typeof chainId !== "number" || !Number.isSafeInteger(chainId)) throw invalid("lane.chainId", "must be a number");
  if (typeof signer !== "string" || !ADDRESS.test(signer)) throw invalid("lane.signer", "must be an address");
  const named = { lane: { chainId, signer: signer as Address }, action, owner: readOwner(owner, "owner") };
  return { ...named, body: asObject(body, "body") };
}

function readKill(value: unknown): Kill {
  const { killId, signer, actor, reason } = asObject(value);
  if (typeof killId !== "string" || !UUID.test(killId)) throw invalid("killId", "must be a UUID");
  if (typeof actor !== "string" || typeof reason !== "string") throw invalid("actor", "actor and reason must be text");
  if (signer !== null && !(typeof signer === "string" && ADDRESS.test(signer)))
    throw invalid("signer", "must be an address");
  return { killId, signer: signer as Address | null, actor, reason };
}

function readCreates(body: unknown): { readonly creates: readonly ForwardedCreate[]; readonly repeat: boolean } {
  const { creates, repeat } = asObject(body);
  if (typeof repeat !== "boolean") throw invalid("repeat", "must be true or false");
  if (!Array.isArray(creates)) throw invalid("creates", "must be an array");
  if (creates.length > BATCH_ITEMS_LIMIT) throw invalid("creates", `has more than ${BATCH_ITEMS_LIMIT} items`);
  return { creates: creates.map((each, index) => readForwardedCreate(each, `creates.${index}`)), repeat };
}

function resultView(result: Created | FencepostError, mask: Mask): wire.PeerResults["results"][number] {
  return result instanceof FencepostError ? problemOf(result, mask) : createdView(result);
}

function createdView({ outcome, txId, lane, requestId, nonce, state }: Created): wire.PeerCreated {
  return { outcome, txId, lane: { chainId: lane.chainId, signer: lane.signer }, requestId, nonce, state };
}
