/**
 * For clients that repeat a send by themselves when its answer was lost, and cannot name it: what is sent is its name. Two
 * sends that are alike and less than a minute apart are then one, on whichever nodes they arrive. Only where the caller asks for
 * that: who pays the same twice on purpose would pay once.
 */
import { hash } from "node:crypto";
import type { CreateRequest } from "../../../application/api.ts";
import { FencepostError } from "../../../domain/errors.ts";
import type { Asking } from "./asking.ts";

/** viem's bare requests give up after four times ten seconds. */
const WINDOW_MS = 60_000;

/** Those that have neither a request id nor a nonce get a request id by their contents. */
export async function nameRepeats(
  asking: Asking,
  requests: readonly CreateRequest[],
): Promise<readonly CreateRequest[]> {
  const alike = new Map<string, number>();
  return Promise.all(
    requests.map((request) => {
      if (request.requestId !== undefined || request.nonce !== undefined) return request;
      const contents = hash("sha256", JSON.stringify(request).toLowerCase(), "hex");
      // Twice in one packet is twice on purpose: the packet is repeated as a whole.
      const place = alike.get(contents) ?? 0;
      alike.set(contents, place + 1);
      return named(asking, request, `repeat:${contents}:${place}`);
    }),
  );
}

/** A minute is counted by the clock: who repeats at its end finds the name of the minute before. */
async function named({ api, clock }: Asking, request: CreateRequest, name: string): Promise<CreateRequest> {
  const window = Math.floor(clock.now().getTime() / WINDOW_MS);
  const before = `${name}:${window - 1}`;
  const lane = { signer: String(request.signer), chainId: Number(request.chainId) };
  try {
    await api.transactionByRequest({ ...lane, requestId: before });
    return { ...request, requestId: before };
  } catch (error) {
    if (!(error instanceof FencepostError) || error.code !== "NOT_FOUND") throw error;
    return { ...request, requestId: `${name}:${window}` };
  }
}
