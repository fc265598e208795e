/** Trace of a request, from the header `traceparent` (W3C Trace Context). */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** True if the sender decided that the trace is recorded. */
  readonly sampled: boolean;
}

/** Parts of a `traceparent`: version, trace, span, flags. Later versions may append fields, which are ignored. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 1;
const LONGEST = 256;

/**
 * Parses `traceparent`; null if it is malformed. A well-formed header is accepted from any sender, because no decision
 * depends on it.
 */
export function parseTraceparent(text: unknown): TraceContext | null {
  if (typeof text !== "string" || text.length > LONGEST) return null;
  const [, version, traceId, spanId, flags = "", more] = TRACEPARENT.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || (version === "00" && more !== undefined)) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/**
 * Reads the `traceparent` from a transaction's metadata. It is stored there, within the caller's payload, so that every
 * node can read it and the table needs no extra column.
 */
export function traceparentIn(metadata: Readonly<Record<string, unknown>> | null): string | null {
  const { traceparent } = metadata ?? {};
  return parseTraceparent(traceparent) === null ? null : (traceparent as string);
}
