/**
 * A span around creates, where traces are recorded. Its context is kept with each transaction, among the caller's metadata: the
 * stages that follow, hours later and on other nodes, are told beneath it (docs/traces.md).
 */
import { FencepostError } from "../../domain/errors.ts";
import { traceparentIn } from "../../domain/trace-context.ts";
import { noTracer, type Tracer } from "../../ports/tracer.ts";
import type { CreateRequest } from "../api.ts";
import type { Teller, Told } from "../stages/1-create/create.ts";

/** With the context that is added, metadata of this size is still accepted: a trace must not be what has a request refused. */
const ROOM_CHARACTERS = 7 * 1024;

type Fates<F> = Promise<readonly (F | FencepostError)[]>;

export async function tracedCreates<F>(
  tracer: Tracer = noTracer,
  told: readonly Told[],
  by: Teller,
  creates: { create(told: readonly Told[], by: Teller): Fates<F> },
): Fates<F> {
  // What another node tells of is in its trace already.
  const span = by === "caller" ? tracer.begin("fencepost.create", told.length) : null;
  if (span === null) return creates.create(told, by);
  const traced = told.map((each) => ({ ...each, request: withTrace(each.request, span.traceparent) }));
  try {
    const fates = await creates.create(traced, by);
    const failed = fates.filter((fate) => fate instanceof FencepostError);
    const [first] = failed;
    span.end(first === undefined ? null : `${failed.length} of ${fates.length} refused; the first: ${first.code}`);
    return fates;
  } catch (error) {
    span.end(error instanceof FencepostError ? error.code : "failed");
    throw error;
  }
}

/** The same for an intent that goes into the caller's own transaction, and is taken up later. */
export async function tracedIntent<T>(
  tracer: Tracer = noTracer,
  request: CreateRequest,
  take: (request: CreateRequest) => Promise<T>,
): Promise<T> {
  const span = tracer.begin("fencepost.create", 1);
  if (span === null) return take(request);
  try {
    const taken = await take(withTrace(request, span.traceparent));
    span.end(null);
    return taken;
  } catch (error) {
    span.end(error instanceof FencepostError ? error.code : "failed");
    throw error;
  }
}

/** A context that the caller put there stays: it knows where its work belongs. What is no object is refused later, as it is. */
function withTrace(request: CreateRequest, traceparent: string): CreateRequest {
  const { metadata = null } = Object(request) as Pick<CreateRequest, "metadata">;
  if (typeof request !== "object" || !isPlain(metadata) || traceparentIn(metadata) !== null) return request;
  return hasRoom(metadata) ? { ...request, metadata: { ...metadata, traceparent } } : request;
}

function isPlain(metadata: unknown): metadata is Readonly<Record<string, unknown>> | null {
  return typeof metadata === "object" && !Array.isArray(metadata);
}

/** Inside a process anything may be in there; whether it is JSON is judged where it is parsed. */
function hasRoom(metadata: unknown): boolean {
  try {
    return Buffer.byteLength(JSON.stringify(metadata) ?? "") < ROOM_CHARACTERS;
  } catch {
    return false;
  }
}
