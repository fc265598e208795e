import { NOT_STARTED, type NotStarted } from "../../../domain/chain/answers.ts";
import type { Hex } from "../../../domain/lane.ts";
import { ChainUnavailable, type MayLeave, type PassedAnswer } from "../../../ports/chain.ts";
import { describeFailure, type Endpoint, type Endpoints } from "../rpc/endpoints.ts";
import { BadAnswer, RpcErrorAnswer, RpcNotStarted, RpcUnreachable, saysOverLimit } from "../rpc/rpc-errors.ts";

/** Error for a response that is too large, with the code that geth uses. */
const TOO_LARGE: PassedAnswer = { kind: "error", code: -32003, message: "response too large: ask for less at once" };

/**
 * Forwards a caller's JSON-RPC request to one endpoint after another until one answers. The outcome does not change an
 * endpoint's health: otherwise a caller with too large requests could put the node's endpoints out of use. For the same
 * reason a request that timed out is not sent to the next endpoint.
 */
export function passOn(endpoints: Endpoints, method: string, params: unknown): Promise<PassedAnswer> {
  return askInTurn(endpoints, endpoints.usable(), ({ rpc }) => rpc.pass({ method, params: params ?? [] }));
}

/**
 * Sends a transaction that the caller signed. If there are private endpoints, only they receive it; read-only endpoints
 * never do. `mayLeave` is called for each endpoint when a connected socket is free for the bytes.
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
      // After its connection ended, an endpoint's URL may lead to another chain, so its chain id is checked before the
      // request.
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

/**
 * Returns the endpoint's response that an error carries; null if the endpoint gave none. Rethrows errors that were not
 * caused by an endpoint.
 */
function answerIn(error: unknown): PassedAnswer | null {
  if (error instanceof RpcUnreachable) return error.kind === "tooLarge" ? TOO_LARGE : null;
  if (error instanceof BadAnswer) return null;
  if (!(error instanceof RpcErrorAnswer)) throw error;
  if (saysOverLimit(error)) return null;
  const { code, message, data } = error;
  return { kind: "error", code, message, ...(data === undefined ? {} : { data }) };
}
