import type { FastifyInstance } from "fastify";
import { CreatedTransaction } from "../../../contract/create.ts";
import { NonceReservation } from "../../../contract/nonces.ts";
import { invalid } from "../../../domain/errors.ts";
import type { RouteContext } from "../context.ts";
import { asObject } from "../json-body.ts";
import { noQuery } from "../query.ts";
import { createdView, reservationView } from "../views.ts";

interface Named {
  readonly Params: { readonly reservationId: string };
}

/** Blobs travel in the raw transaction: six of them, in hex, with their proofs. */
const RAW_LIMIT_BYTES = 2 * 1024 * 1024;

export function nonceRoutes(app: FastifyInstance, { api, checksum }: RouteContext): void {
  const reservation = { schema: { response: { 200: NonceReservation, 201: NonceReservation } } };
  const tracked = { schema: { response: { 202: CreatedTransaction } } };
  const base = "/api/v1/nonces/:reservationId";

  app.post("/api/v1/nonces", reservation, async (request, reply) => {
    const { outcome, reservation } = await api.reserveNonce(asObject(request.body));
    reply.code(outcome === "created" ? 201 : 200).header("location", `/api/v1/nonces/${reservation.reservationId}`);
    return reservationView(reservation, checksum);
  });

  app.get<Named>(base, reservation, async (request) => {
    noQuery(request.query);
    return reservationView(await api.reservation(request.params.reservationId), checksum);
  });

  const uses = [
    {
      path: "submit",
      use: (id: string, body: object) => api.submitReserved(id, body),
      options: { bodyLimit: RAW_LIMIT_BYTES, ...tracked },
    },
    { path: "used", use: (id: string, body: object) => api.markUsed(id, body), options: tracked },
  ];
  for (const { path, use, options } of uses) {
    app.post<Named>(`${base}/${path}`, options, async (request, reply) => {
      const created = await use(request.params.reservationId, asObject(request.body));
      reply.code(202).header("location", `/api/v1/tx/${created.txId}`);
      return createdView(created, checksum);
    });
  }

  app.post<Named>(`${base}/release`, reservation, async (request) => {
    const [unknown] = Object.keys(request.body === undefined ? {} : asObject(request.body));
    if (unknown !== undefined) throw invalid(unknown, "is not a known field");
    return reservationView(await api.releaseNonce(request.params.reservationId), checksum);
  });
}
