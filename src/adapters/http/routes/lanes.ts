import type { FastifyInstance } from "fastify";
import { LANE_ACTIONS } from "../../../contract/actions.ts";
import { ClusterNodes, LaneLeases } from "../../../contract/cluster.ts";
import { CreatedTransaction } from "../../../contract/create.ts";
import { NonceReservation } from "../../../contract/nonces.ts";
import { SignerLanes, SignerQuery, SignersPage, SignersQuery } from "../../../contract/signers.ts";
import { invalid } from "../../../domain/errors.ts";
import { keyOfOrder } from "../idempotency-key.ts";
import { asObject } from "../json-body.ts";
import { actorOf, answering, type RouteContext, TRANSACTION_LIMIT_BYTES } from "../options.ts";
import { noQuery, queryReader } from "../query.ts";
import { createdView, leaseView, nodeView, reservationView, signersView } from "../views.ts";

interface BySigner {
  readonly Params: { readonly signer: string };
}

interface ByReservation {
  readonly Params: { readonly reservationId: string };
}

/** Blobs travel in the raw transaction: six of them, in hex, with their proofs. */
const RAW_LIMIT_BYTES = 2 * 1024 * 1024;

const readSignersQuery = queryReader(SignersQuery);
const readSignerQuery = queryReader(SignerQuery);

/** Lanes by their signer, which node acts for them, and the nodes that could. */
export function laneRoutes(app: FastifyInstance, { checksum, clock }: RouteContext): void {
  app.get("/api/v1/signers", answering({ 200: SignersPage }), async ({ query, api }) => {
    const { items, next } = await api.signers(readSignersQuery(query));
    return { ...signersView(items, checksum, clock.now()), next };
  });

  const lanes = answering({ 200: SignerLanes });
  app.get<BySigner>("/api/v1/signers/:signer", lanes, async ({ params, query, api }) => {
    const { fresh } = readSignerQuery(query);
    return signersView(await api.signer(params.signer, { fresh: fresh === "true" }), checksum, clock.now());
  });

  const decided = { bodyLimit: TRANSACTION_LIMIT_BYTES, ...lanes };
  for (const action of LANE_ACTIONS) {
    app.post<BySigner>(`/api/v1/signers/:signer/${action}`, decided, async (request) => {
      const { params, query, body, principal, api } = request;
      noQuery(query);
      const order = { action, signer: params.signer, request: body, actor: actorOf(principal), ...keyOfOrder(request) };
      return signersView(await api.actOnLane(order), checksum, clock.now());
    });
  }

  app.get("/api/v1/nodes", answering({ 200: ClusterNodes }), async ({ query, api }) => {
    noQuery(query);
    return { items: (await api.nodes()).map(nodeView) };
  });

  app.get("/api/v1/leases", answering({ 200: LaneLeases }), async ({ query, api }) => {
    noQuery(query);
    const leases = await api.leases();
    return { items: leases.flatMap((lease) => leaseView(lease, checksum) ?? []) };
  });
}

/** Nonces that callers keep for transactions of their own. */
export function nonceRoutes(app: FastifyInstance, { checksum }: RouteContext): void {
  const reserved = answering({ 200: NonceReservation, 201: NonceReservation });
  const metered = { config: { metered: true as const }, ...reserved };
  const tracked = answering({ 202: CreatedTransaction });
  const base = "/api/v1/nonces/:reservationId";

  app.post("/api/v1/nonces", metered, async ({ body, api }, reply) => {
    const { outcome, reservation } = await api.reserveNonce(asObject(body));
    reply.code(outcome === "created" ? 201 : 200).header("location", `/api/v1/nonces/${reservation.reservationId}`);
    return reservationView(reservation, checksum);
  });

  app.get<ByReservation>(base, reserved, async ({ params, query, api }) => {
    noQuery(query);
    return reservationView(await api.reservation(params.reservationId), checksum);
  });

  for (const path of ["submit", "used"] as const) {
    const options = path === "submit" ? { bodyLimit: RAW_LIMIT_BYTES, ...tracked } : tracked;
    app.post<ByReservation>(`${base}/${path}`, options, async ({ params, body, api }, reply) => {
      const use = asObject(body);
      const { reservationId } = params;
      const created = await (path === "submit"
        ? api.submitReserved(reservationId, use)
        : api.markUsed(reservationId, use));
      reply.code(202).header("location", `/api/v1/tx/${created.txId}`);
      return createdView(created, checksum);
    });
  }

  app.post<ByReservation>(`${base}/release`, reserved, async ({ params, body, api }) => {
    const [unknown] = Object.keys(body === undefined ? {} : asObject(body));
    if (unknown !== undefined) throw invalid(unknown, "is not a known field: a release has none");
    return reservationView(await api.releaseNonce(params.reservationId), checksum);
  });
}
