/**
 * Stage 1: a span around creates, if traces are recorded. Its context is kept with each transaction, among the caller's
 * metadata: the stages that follow, hours later and on other nodes, are recorded beneath it (docs/traces.md).
 * Reads: the request. Writes: nothing. A crash here leaves nothing behind.
 */
import { FencepostError } from "../../../domain/errors.ts";
import { traceparentIn } from "../../../domain/text/trace-context.ts";
import { noTracer, type Tracer } from "../../../ports/tracer.ts";
import type { CreateRequest } from "../../api.ts";

/** With the context that is added, metadata of this size is still accepted: no request is refused because of its trace. */
const ROOM_CHARACTERS = 7 * 1024;

interface Asked {
  readonly request: CreateRequest;
}

export async function traced<A extends Asked, R>(
  tracer: Tracer = noTracer,
  asked: readonly A[],
  work: (asked: readonly A[]) => Promise<readonly (R | FencepostError)[]>,
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

/** A context that the caller gave stays: it knows where its work belongs. A request that is no object is refused later. */
function withTrace(request: CreateRequest, traceparent: string): CreateRequest {
  const { metadata = null } = Object(request) as Pick<CreateRequest, "metadata">;
  if (typeof request !== "object" || !isPlain(metadata) || traceparentIn(metadata) !== null) return request;
  return hasRoom(metadata) ? { ...request, metadata: { ...metadata, traceparent } } : request;
}

function isPlain(metadata: unknown): metadata is Readonly<Record<string, unknown>> | null {
  return typeof metadata === "object" && !Array.isArray(metadata);
}

/** Inside a process metadata may be anything; the parser refuses what is not JSON. */
function hasRoom(metadata: unknown): boolean {
  try {
    return Buffer.byteLength(JSON.stringify(metadata) ?? "") < ROOM_CHARACTERS;
  } catch {
    return false;
  }
}
