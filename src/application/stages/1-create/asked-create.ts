/**
 * Stage 1, the request of one create: parses it, puts a span around it if traces are recorded, and decodes a contract's
 * revert error with the caller's ABI. The span's context is stored in the metadata, so that later stages, hours later
 * and on other nodes, are recorded beneath it (docs/traces.md). An owner without a URL reads the creates that other
 * processes enqueued for its lanes (cluster/pending-creates.ts) and handles them as if they had been forwarded.
 *
 * Reads: the request. Writes: nothing. Invariants: a mistake is refused before anything is consumed; I4, I5. A crash
 * here leaves nothing behind. An enqueued create may or may not have been made by then: the lane's next owner looks up
 * its id before it makes anything.
 */
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { type Address, type Hex, type Lane, laneKey } from "../../../domain/lane.ts";
import type { PoolAsked } from "../../../domain/nonces/pool.ts";
import { problemFrom } from "../../../domain/text/refusal.ts";
import { traceparentIn } from "../../../domain/text/trace-context.ts";
import type { Intent } from "../../../domain/transaction/transaction.ts";
import type { Codec } from "../../../ports/codec.ts";
import { noTracer, type Tracer } from "../../../ports/tracer.ts";
import type { CreateRequest } from "../../api.ts";
import type { OwnerAction } from "../../cluster/owner-actions.ts";
import {
  type Naming,
  type NormalisePorts,
  normalise,
  parsePool,
  readForwardedCreate,
} from "../../requests/normalise.ts";
import type { Entering, Item, Result } from "./answer-existing.ts";

/** A create as requested. It has a `txId` if another node received the request and forwarded it. */
export interface AskedCreate extends Naming {
  readonly request: CreateRequest;
  /** Queue share of the caller's API key, if another node forwarded the create: only that node knows the key. */
  readonly queueShare?: number;
}

/** Source of creates. Creates from another node are made here or refused, but never forwarded to a third node. */
export type Inlet = "caller" | { readonly repeat: boolean };

export interface CreateItem extends Item, Entering {
  readonly asked: AskedCreate;
  intent: Intent;
  /**
   * The pool that the request names; null if the caller named the signer, or if the node that forwarded the create has
   * already chosen one.
   */
  readonly pool: PoolRequest | null;
}

interface PoolRequest {
  readonly asked: PoolAsked;
  /** Lanes of the pool that may be chosen; empty if the request is already answered and needs no lane. */
  lanes: readonly Lane[];
  readonly tried: Set<Address>;
}

/** Placeholder for the signer's address, until a signer of the pool is chosen. */
const NOBODY = `0x${"0".repeat(40)}` as Address;

export function parseCreate(ports: NormalisePorts, asked: AskedCreate, inlet: Inlet): CreateItem | FencepostError {
  const { request, limits } = asked;
  const queueShare = limits?.queueShare ?? asked.queueShare ?? null;
  const signer = (request as CreateRequest | null | undefined)?.signer;
  try {
    const pool = parsePool(signer);
    if (inlet !== "caller" || pool === null) {
      return { asked, intent: normalise(ports, request, asked, pool), queueShare, result: null, pool: null };
    }
    // The key's limits on signers are checked later, against all members of the pool (pools.ts).
    const ofChains = limits === undefined ? {} : { limits: { ...limits, signers: null } };
    const intent = normalise(ports, request, { ...asked, ...ofChains, chosen: NOBODY }, pool);
    return { asked, intent, queueShare, result: null, pool: { asked: pool, lanes: [], tried: new Set<Address>() } };
  } catch (error) {
    if (error instanceof FencepostError) return error;
    throw error;
  }
}

export interface PoolItem extends CreateItem {
  readonly pool: PoolRequest;
}

export function isPooled(item: CreateItem): item is PoolItem {
  return item.pool !== null;
}

export function isItem(parsed: CreateItem | FencepostError): parsed is CreateItem {
  return !(parsed instanceof FencepostError);
}

/**
 * The trace context is added only to metadata of up to this size. Larger metadata might exceed its own limit with the
 * context, and no request may be refused because of its trace.
 */
const ROOM_CHARACTERS = 7 * 1024;

export async function traced<R>(
  tracer: Tracer = noTracer,
  asked: readonly AskedCreate[],
  work: (asked: readonly AskedCreate[]) => Promise<readonly (R | FencepostError)[]>,
): Promise<readonly (R | FencepostError)[]> {
  const span = tracer.begin("fencepost.create", asked.length);
  if (span === null) return work(asked);
  try {
    const results = await work(asked.map((each) => ({ ...each, request: withTrace(each.request, span.traceparent) })));
    const failed = results.filter((each) => each instanceof FencepostError);
    const [first] = failed;
    span.end(first === undefined ? null : `${failed.length} of ${results.length} refused; the first: ${first.code}`);
    return results;
  } catch (error) {
    span.end(error instanceof FencepostError ? error.code : "failed");
    throw error;
  }
}

/**
 * Adds the trace context to the metadata. A context set by the caller is kept. A request that is not an object is
 * refused later.
 */
function withTrace(request: CreateRequest, traceparent: string) {
  const { metadata = null } = Object(request) as Pick<CreateRequest, "metadata">;
  if (typeof request !== "object" || !isPlain(metadata) || traceparentIn(metadata) !== null) return request;
  return hasRoom(metadata) ? { ...request, metadata: { ...metadata, traceparent } } : request;
}

function isPlain(metadata: unknown): metadata is Readonly<Record<string, unknown>> | null {
  return typeof metadata === "object" && !Array.isArray(metadata);
}

/** A caller inside the process may pass any metadata; the parser later refuses metadata that is not JSON. */
function hasRoom(metadata: unknown) {
  try {
    return Buffer.byteLength(JSON.stringify(metadata) ?? "") < ROOM_CHARACTERS;
  } catch {
    return false;
  }
}

const LONGEST_WORDS = 300;

export function withNamedRevert(codec: Pick<Codec, "decodeError">, request: CreateRequest, result: Result): Result {
  if (!(result instanceof FencepostError)) return result;
  const { revert, ...extras } = result.extras;
  const abi = abiOf(request.payload);
  if (abi === null || revert === undefined || revert.name !== null) return result;
  const decoded = codec.decodeError(abi, revert.data as Hex);
  if (decoded === null) return result;
  const { name, args } = decoded;
  const words = `${name}(${args.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join(", ")})`;
  const message = words.slice(0, LONGEST_WORDS);
  const named = { ...extras, revert: { ...revert, name, args, message }, cause: result };
  return new FencepostError(result.code, `the call would revert: ${message}`, named);
}

/** The ABI in the caller's payload: the field `abi`, or an ABI given as `function`; null if there is none. */
function abiOf(payload: unknown): readonly unknown[] | null {
  const { abi, function: callee } = (payload ?? {}) as { readonly abi?: unknown; readonly function?: unknown };
  const given = abi ?? callee;
  return Array.isArray(given) ? given : null;
}

interface Maker {
  create(asked: readonly AskedCreate[], inlet: Inlet): Promise<readonly Result[]>;
}

export function dequeuedCreates(creates: Maker): OwnerAction {
  return async ({ lane }, { body, again = false }) => {
    const asked = readAll(lane, body.creates);
    const results = await creates.create(asked, { repeat: again });
    refuseLost(results);
    return { results: results.map((each) => (each instanceof FencepostError ? problemFrom(each) : each)) };
  };
}

function readAll(lane: Lane, creates: unknown) {
  if (!Array.isArray(creates)) throw invalid("creates", "must be an array");
  return creates.map((each: unknown, index) => {
    const create = readForwardedCreate(each, `creates.${index}`);
    const { chosen, request } = create;
    const named = { chainId: Number(request.chainId), signer: String(chosen ?? request.signer).toLowerCase() };
    if (laneKey(named as Lane) !== laneKey(lane))
      throw invalid(`creates.${index}`, "is for another signer or chain than the lane of the request");
    return create;
  });
}

/**
 * The lane was lost while its creates were being made. Its next owner makes the rest, and recognises those already
 * made.
 */
function refuseLost(results: readonly Result[]) {
  const lost = results.filter(
    (each) => each instanceof FencepostError && each.code === "NOT_LEADER",
  ) as FencepostError[];
  const [first] = lost;
  if (first === undefined) return;
  const isNothingDone = lost.length === results.length && lost.every(({ extras }) => extras.outcome === undefined);
  throw isNothingDone
    ? first
    : new FencepostError("NOT_LEADER", first.message, { ...first.extras, outcome: "unknown" });
}
