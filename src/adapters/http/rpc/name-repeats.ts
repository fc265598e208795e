/**
 * For clients that repeat a send by themselves when its answer was lost, and cannot name it: what one key sends is its name. Sends
 * that are alike and within a minute of the first are then one, on whichever nodes they arrive. Only where the caller asks for
 * that: who pays the same twice on purpose would pay once.
 */
import { hash } from "node:crypto";
import type { CreateRequest } from "../../../application/api.ts";
import { FencepostError } from "../../../domain/errors.ts";
import { isAnothers } from "../../../domain/principal.ts";
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
      const contents = JSON.stringify(request).toLowerCase();
      // Twice in one packet is twice on purpose: the packet is repeated as a whole.
      const place = alike.get(contents) ?? 0;
      alike.set(contents, place + 1);
      return named(asking, request, { contents, place });
    }),
  );
}

interface Send {
  readonly contents: string;
  readonly place: number;
}

/** Windows are minutes of the clock: a repeat behind the end of one finds the name of the minute before. */
async function named(asking: Asking, request: CreateRequest, { contents, place }: Send): Promise<CreateRequest> {
  const { clock, principal } = asking;
  const window = Math.floor(clock.now().getTime() / WINDOW_MS);
  const nameIn = (window: number, of: string) => `repeat:${hash("sha256", of, "hex")}:${place}:${window}`;
  const own = `${JSON.stringify(principal.name)}${contents}`;
  // Names of the release before had no key in them: if they were not found, a repeat across an upgrade would pay twice.
  const earlier = [nameIn(window - 1, own), nameIn(window, contents), nameIn(window - 1, contents)];
  const found = await Promise.all(earlier.map((requestId) => isRepeatOf(asking, request, requestId)));
  return { ...request, requestId: earlier[found.indexOf(true)] ?? nameIn(window, own) };
}

/** Whether this key made a transaction under that name less than a minute ago. */
async function isRepeatOf(asking: Asking, request: CreateRequest, requestId: string): Promise<boolean> {
  const { api, clock, principal } = asking;
  const lane = { signer: String(request.signer), chainId: Number(request.chainId) };
  try {
    const { createdAt, owner } = await api.transactionByRequest({ ...lane, requestId });
    return clock.now().getTime() - createdAt.getTime() < WINDOW_MS && !isAnothers(owner, principal.name);
  } catch (error) {
    if (!(error instanceof FencepostError) || error.code !== "NOT_FOUND") throw error;
    return false;
  }
}
