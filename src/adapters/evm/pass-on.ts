import { ChainUnavailable, type PassedAnswer } from "../../ports/chain.ts";
import type { Endpoint, Endpoints } from "./rpc/endpoints.ts";
import { BadAnswer } from "./rpc/quantities.ts";
import { RpcErrorAnswer, RpcUnreachable, saysOverLimit } from "./rpc/rpc-errors.ts";

/** geth's code for it. */
const TOO_LARGE: PassedAnswer = { kind: "error", code: -32003, message: "response too large: ask for less at once" };

/**
 * A caller's question, put to one endpoint after the other until one answers. What becomes of it says nothing about an
 * endpoint's health: a caller that asks for too much must not cost the node its endpoints. For the same reason a question
 * that took all its time is not put to the next one.
 */
export async function passOn(endpoints: Endpoints, method: string, params: unknown): Promise<PassedAnswer> {
  const reasons: string[] = [];
  for (const endpoint of receivers(endpoints, method)) {
    try {
      // One that may serve another chain by now has to prove that it does not.
      if (endpoint.chain !== "proven") await endpoints.askOne(endpoint, async () => undefined);
      return { kind: "result", result: await endpoint.rpc.pass(method, params ?? []) };
    } catch (error) {
      const answer = answerIn(error);
      if (answer !== null) return answer;
      reasons.push(reasonOf(endpoint, error));
      if (error instanceof RpcUnreachable && error.kind === "timeout") break;
    }
  }
  throw new ChainUnavailable(reasons.length === 0 ? "no endpoint serves this chain" : reasons.join("; "));
}

/** A stranger's transaction goes to private endpoints alone if there are any; `send: "never"` holds for it too. */
function receivers(endpoints: Endpoints, method: string): readonly Endpoint[] {
  if (method !== "eth_sendRawTransaction") return endpoints.usable();
  return endpoints.senders(endpoints.privateEndpoints.length > 0);
}

/** Null: this endpoint gave none. Throws a mistake of ours. */
function answerIn(error: unknown): PassedAnswer | null {
  if (error instanceof RpcUnreachable) return error.kind === "tooLarge" ? TOO_LARGE : null;
  if (error instanceof BadAnswer) return null;
  if (!(error instanceof RpcErrorAnswer)) throw error;
  if (saysOverLimit(error)) return null;
  const { code, message, data } = error;
  return { kind: "error", code, message, ...(data === undefined ? {} : { data }) };
}

function reasonOf({ rpc }: Endpoint, error: unknown): string {
  return error instanceof RpcUnreachable ? error.message : `${rpc.label}: ${(error as Error).message}`;
}
