import type { PeerAction, PeerCreates } from "../../contract/peer-wire.ts";
import type { Kill } from "../../domain/cluster/kills.ts";
import { defined } from "../../domain/defined.ts";
import { type FencepostError, unavailable } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import { jsonText } from "../../domain/text/json-text.ts";
import { errorFrom } from "../../domain/text/refusal.ts";
import type { ForwardedAnswer, ForwardedCreate, LaneAnswer, LaneRequest } from "../../ports/peers.ts";
import { readForwardedAnswer } from "../../ports/peers.ts";

/** Error for a malformed response of another node; the outcome of the request is unknown. */
function notAnAnswer(detail: string) {
  return new Error(`the other node's response is malformed: ${detail}`);
}

type Fields = Readonly<Record<string, unknown>>;

export function encodeCreates(creates: readonly ForwardedCreate[], repeat: boolean): string {
  const forwarded = creates.map(({ txId, owner, queueShare, chosen, request }) => {
    return defined({ txId, request, owner: owner ?? undefined, queueShare, chosen });
  });
  return jsonText({ creates: forwarded, repeat } satisfies PeerCreates);
}

export function encodeAction({ chainId, signer }: Lane, { action, body, owner }: LaneRequest): string {
  const request: PeerAction = { lane: { chainId, signer }, action, body, ...(owner === null ? {} : { owner }) };
  return jsonText(request);
}

export function encodeKill({ killId, signer, actor, reason }: Kill): string {
  return JSON.stringify({ killId, signer, actor, reason } satisfies Kill);
}

export function decodeActionResult(text: string): LaneAnswer | FencepostError {
  const result = asFields(asFields(parse(text)).result);
  if (typeof result.code === "string") return decodeProblem(result.code, result);
  if (!Object.hasOwn(result, "answer")) throw notAnAnswer("the result has neither an answer nor an error code");
  return { answer: result.answer };
}

export function decodeResults(text: string, expected: number): readonly (ForwardedAnswer | FencepostError)[] {
  const { results } = asFields(parse(text));
  if (!Array.isArray(results)) throw notAnAnswer("it has no list of results");
  if (results.length !== expected) throw notAnAnswer(`${results.length} results for ${expected} creates`);
  return results.map((result: unknown) => {
    const fields = asFields(result);
    if (typeof fields.code === "string") return decodeProblem(fields.code, fields);
    const answer = readForwardedAnswer(fields);
    if (typeof answer === "string") throw notAnAnswer(answer);
    return answer;
  });
}

/** Reads the error in a problem document; null if the text is anything else. */
export function readProblem(text: string): FencepostError | null {
  try {
    return errorFrom(asFields(parse(text)));
  } catch {
    return null;
  }
}

/**
 * Converts a problem to an error. An unknown code is still a refusal. It becomes UNAVAILABLE, because it is not known
 * whether a retry helps.
 */
function decodeProblem(code: string, fields: Fields) {
  const refused = `the node that acts for this signer refused: ${code}`;
  return errorFrom(fields) ?? unavailable(typeof fields.detail === "string" ? `${refused}: ${fields.detail}` : refused);
}

function asFields(value: unknown) {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw notAnAnswer("it is not an object");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notAnAnswer("it is not JSON");
  }
}
