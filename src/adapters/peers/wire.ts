import type { PeerAction, PeerCreates } from "../../contract/peer-wire.ts";
import { defined } from "../../domain/defined.ts";
import { type FencepostError, unavailable } from "../../domain/errors.ts";
import type { Kill } from "../../domain/kills.ts";
import type { Lane } from "../../domain/lane.ts";
import { errorFrom } from "../../domain/refusal.ts";
import { STATES, type State } from "../../domain/transitions.ts";
import type { ForwardedAnswer, ForwardedCreate, LaneAnswer, LaneRequest } from "../../ports/peers.ts";

/** The answer does not have the agreed form, so the outcome is unknown. */
class NotAnAnswer extends Error {
  override readonly name = "NotAnAnswer";

  constructor(detail: string) {
    super(`not an answer: ${detail}`);
  }
}

type Fields = Readonly<Record<string, unknown>>;

export function encodeCreates(creates: readonly ForwardedCreate[], repeat: boolean): string {
  const told = creates.map(({ txId, owner, queueShare, chosen, request }) => {
    return { txId, request, ...ownedBy(owner), ...defined({ queueShare, chosen }) };
  });
  const body: PeerCreates = { creates: told, repeat };
  return JSON.stringify(body, bigintAsDigits);
}

export function encodeAction({ chainId, signer }: Lane, { action, body, owner }: LaneRequest): string {
  const letter: PeerAction = { lane: { chainId, signer }, action, body, ...ownedBy(owner) };
  return JSON.stringify(letter, bigintAsDigits);
}

function ownedBy(owner: string | null): Pick<PeerAction, "owner"> {
  return owner === null ? {} : { owner };
}

export function encodeKill({ killId, signer, actor, reason }: Kill): string {
  return JSON.stringify({ killId, signer, actor, reason } satisfies Kill);
}

export function decodeActionResult(text: string): LaneAnswer | FencepostError {
  const result = asFields(asFields(parse(text)).result);
  if (typeof result.code === "string") return decodeProblem(result.code, result);
  if (!Object.hasOwn(result, "answer")) throw new NotAnAnswer("a result that is none");
  return { answer: result.answer };
}

export function decodeResults(text: string, expected: number): readonly (ForwardedAnswer | FencepostError)[] {
  const { results } = asFields(parse(text));
  if (!Array.isArray(results)) throw new NotAnAnswer("no results in it");
  if (results.length !== expected) throw new NotAnAnswer(`${results.length} results for ${expected} creates`);
  return results.map((result: unknown) => {
    const fields = asFields(result);
    return typeof fields.code === "string" ? decodeProblem(fields.code, fields) : decodeAnswer(fields);
  });
}

/** What a problem document of ours says; null where the text is anything else. */
export function readProblem(text: string): FencepostError | null {
  try {
    return errorFrom(asFields(parse(text)));
  } catch {
    return null;
  }
}

/** A code that this version does not know is a refusal all the same; only what it permits next is unknown. */
function decodeProblem(code: string, fields: Fields): FencepostError {
  const refused = `the node that acts for this signer refused: ${code}`;
  return errorFrom(fields) ?? unavailable(isText(fields.detail) ? `${refused}: ${fields.detail}` : refused);
}

function decodeAnswer(fields: Fields): ForwardedAnswer {
  const { outcome, txId, lane, requestId, nonce, state } = fields;
  const isOutcome = outcome === "created" || outcome === "existing";
  if (!isOutcome || !isText(txId) || !isLane(lane)) throw new NotAnAnswer("a result that is none");
  if (!(requestId === null || isText(requestId))) throw new NotAnAnswer("its request id is not text");
  if (!(nonce === null || isCount(nonce))) throw new NotAnAnswer("its nonce is not a number");
  if (!isState(state)) throw new NotAnAnswer(`its state is ${String(state)}`);
  const { chainId, signer } = lane;
  return { outcome, txId, lane: { chainId, signer }, requestId, nonce, state };
}

const isState = (value: unknown): value is State => STATES.some((state) => state === value);
const isText = (value: unknown): value is string => typeof value === "string";
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const isLane = (value: unknown): value is Lane => {
  if (typeof value !== "object" || value === null) return false;
  const { chainId, signer } = value as Partial<Lane>;
  return isCount(chainId) && typeof signer === "string" && /^0x[0-9a-f]{40}$/.test(signer);
};

function asFields(value: unknown): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw new NotAnAnswer("not an object");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new NotAnAnswer("not JSON");
  }
}

/** Inside the library a face value may be a bigint; over the wire it is its decimal digits, which mean the same. */
function bigintAsDigits(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
