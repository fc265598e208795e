import { NOT_STARTED, type NotStarted } from "../../domain/answers.ts";
import type { Hex } from "../../domain/lane.ts";
import { ChainUnavailable, type MayLeave, type PassedAnswer } from "../../ports/chain.ts";
import type { Endpoint } from "./rpc/endpoint.ts";
import { describeFailure, type Endpoints } from "./rpc/endpoints.ts";
import { BadAnswer } from "./rpc/quantities.ts";
import { RpcErrorAnswer, RpcNotStarted, RpcUnreachable, saysOverLimit } from "./rpc/rpc-errors.ts";

/** geth's code for it. */
const TOO_LARGE: PassedAnswer = { kind: "error", code: -32003, message: "response too large: ask for less at once" };

/**
 * A caller's question, put to one endpoint after the other until one answers. What becomes of it says nothing about an
 * endpoint's health: a caller that asks for too much must not cost the node its endpoints. For the same reason a question
 * that took all its time is not put to the next one.
 */
export function passOn(endpoints: Endpoints, method: string, params: unknown): Promise<PassedAnswer> {
  return askInTurn(endpoints, endpoints.usable(), ({ rpc }) => rpc.pass({ method, params: params ?? [] }));
}

/**
 * A stranger's transaction: to private endpoints alone if there are any, and to none that is only read from. `mayLeave` is
 * asked for each endpoint anew, when a connected socket is free for the bytes.
 */
export async function passSigned(
  endpoints: Endpoints,
  raw: Hex,
  mayLeave: MayLeave,
): Promise<PassedAnswer | NotStarted> {
  try {
    const senders = endpoints.senders(endpoints.privateEndpoints.length > 0);
    const call = { method: "eth_sendRawTransaction", params: [raw], mayLeave };
    return await askInTurn(endpoints, senders, ({ rpc }) => rpc.pass(call));
  } catch (error) {
    if (error instanceof RpcNotStarted) return NOT_STARTED;
    throw error;
  }
}

async function askInTurn(
  endpoints: Endpoints,
  candidates: readonly Endpoint[],
  ask: (endpoint: Endpoint) => Promise<unknown>,
): Promise<PassedAnswer> {
  const reasons: string[] = [];
  for (const endpoint of candidates) {
    try {
      // One that may serve another chain by now has to prove that it does not.
      if (endpoint.chain !== "proven") await endpoints.askOne(endpoint, async () => undefined);
      return { kind: "result", result: await ask(endpoint) };
    } catch (error) {
      const answer = answerIn(error);
      if (answer !== null) return answer;
      reasons.push(describeFailure(endpoint, error as Error));
      if (error instanceof RpcUnreachable && error.kind === "timeout") break;
    }
  }
  throw new ChainUnavailable(reasons.length === 0 ? "no endpoint serves this chain" : reasons.join("; "));
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
