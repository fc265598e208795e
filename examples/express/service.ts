/** Payments over HTTP. Nothing is kept here: the order's id is the request id, and Fencepost remembers the rest. */
import express, { type ErrorRequestHandler, type Express } from "express";
import { type FencepostClient, FencepostError } from "fencepost/client";

export function createService(fencepost: FencepostClient, signer: string): Express {
  const service = express();
  service.use(express.json());

  /** 202: it is durable, and will be paid once. To be repeated at will. */
  service.put("/payments/:orderId", async ({ params, body }, response) => {
    const payload = { to: String(body?.to), value: String(body?.value) };
    const { id, state, nonce } = await fencepost.send({ signer, requestId: params.orderId, payload });
    response.status(202).json({ id, state, nonce });
  });

  service.get("/payments/:orderId", async ({ params }, response) => {
    const { state, subState, txHash } = await fencepost.getByRequest({ signer, requestId: params.orderId });
    response.json({ state, subState, txHash });
  });

  service.get("/payments/:orderId/why", async ({ params }, response) => {
    const { txId } = await fencepost.getByRequest({ signer, requestId: params.orderId });
    response.json(await fencepost.explain(txId));
  });

  service.use(asProblem);
  return service;
}

/** What Fencepost refuses is told as it tells it: status, code, and which field is wrong. */
const asProblem: ErrorRequestHandler = (error, _request, response, next) => {
  if (!(error instanceof FencepostError)) return next(error);
  response
    .status(error.status || 503)
    .type("application/problem+json")
    .json(error.problem);
};
