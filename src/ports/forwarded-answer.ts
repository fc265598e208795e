import type { Lane } from "../domain/lane.ts";
import { STATES, type State } from "../domain/transaction/transitions.ts";
import type { ForwardedAnswer } from "./peers.ts";

/** The owner's answer to one create, received over HTTP or through the database; or a text about what is malformed. */
export function readForwardedAnswer(fields: Readonly<Record<string, unknown>>): ForwardedAnswer | string {
  const { outcome, txId, lane, requestId, nonce, state } = fields;
  const isOutcome = outcome === "created" || outcome === "existing";
  if (!isOutcome || !isText(txId) || !isLane(lane)) return "a result that is none";
  if (!(requestId === null || isText(requestId))) return "its request id is not text";
  if (!(nonce === null || isCount(nonce))) return "its nonce is not a number";
  if (!isState(state)) return `its state is ${String(state)}`;
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
