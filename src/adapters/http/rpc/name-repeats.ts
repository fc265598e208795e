/**
 * Derives request ids for clients that repeat a send after a lost answer and cannot name it. Equal sends of one key
 * within a minute of the first become one, on all nodes. Only if the caller asks for it: otherwise two intended equal
 * payments would become one.
 */
import { hash } from "node:crypto";
import type { CreateRequest } from "../../../application/api.ts";
import { isAnothers } from "../../../domain/keys/principal.ts";
import { orNull, type RpcContext } from "./rpc-context.ts";

/** viem's plain requests give up after four times ten seconds. */
const WINDOW_MS = 60_000;

/** If the caller asks for it, adds a request id, derived from the content, to sends without a request id and a nonce. */
export async function nameRepeats(
  context: RpcContext,
  requests: readonly CreateRequest[],
): Promise<readonly CreateRequest[]> {
  if (!context.mergesRepeats) return requests;
  const alike = new Map<string, number>();
  return Promise.all(
    requests.map((request) => {
      if (request.requestId !== undefined || request.nonce !== undefined) return request;
      const contents = JSON.stringify(request).toLowerCase();
      // Equal sends in one packet are intended: clients repeat a packet as a whole.
      const place = alike.get(contents) ?? 0;
      alike.set(contents, place + 1);
      return named(context, request, { contents, place });
    }),
  );
}

/** Windows are minutes of the clock. A repeat in the next minute is found by the previous minute's name. */
async function named(
  context: RpcContext,
  request: CreateRequest,
  { contents, place }: { readonly contents: string; readonly place: number },
): Promise<CreateRequest> {
  const { clock, principal } = context;
  const window = Math.floor(clock.now().getTime() / WINDOW_MS);
  const nameIn = (window: number, of: string) => `repeat:${hash("sha256", of, "hex")}:${place}:${window}`;
  const own = `${JSON.stringify(principal.name)}${contents}`;
  // Names of the previous release lack the key. They are looked up too: otherwise a repeat across an upgrade would
  // pay twice.
  const earlier = [nameIn(window - 1, own), nameIn(window, contents), nameIn(window - 1, contents)];
  const found = await Promise.all(earlier.map((requestId) => isRepeatOf(context, request, requestId)));
  return { ...request, requestId: earlier[found.indexOf(true)] ?? nameIn(window, own) };
}

/** True if this key created a transaction with that name less than a minute ago. */
async function isRepeatOf(context: RpcContext, request: CreateRequest, requestId: string) {
  const { api, clock, principal } = context;
  const lane = { signer: String(request.signer), chainId: Number(request.chainId) };
  const found = await orNull(api.transactionByRequest({ ...lane, requestId }), "NOT_FOUND");
  if (found === null) return false;
  return clock.now().getTime() - found.createdAt.getTime() < WINDOW_MS && !isAnothers(found.owner, principal.name);
}
