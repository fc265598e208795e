import { FencepostError } from "fencepost/client";
import { fencepost, signer } from "./fencepost.ts";

/** Answers once the payment is durable. The form that was sent twice, the function that was run twice: one payment. */
export async function POST(request: Request): Promise<Response> {
  const { orderId, to, value } = (await request.json()) as Record<string, string>;
  try {
    const { id, state } = await fencepost.send({ signer, requestId: orderId, payload: { to, value } });
    return Response.json({ id, state }, { status: 202 });
  } catch (error) {
    return problem(error);
  }
}

export async function GET(request: Request): Promise<Response> {
  const orderId = new URL(request.url).searchParams.get("orderId") ?? "";
  try {
    const { state, txHash } = await fencepost.getByRequest({ signer, requestId: orderId });
    return Response.json({ state, txHash });
  } catch (error) {
    return problem(error);
  }
}

function problem(error: unknown): Response {
  if (!(error instanceof FencepostError)) throw error;
  return Response.json(error.problem, { status: error.status || 503 });
}
