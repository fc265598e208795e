/** The trace that a request belongs to, as W3C Trace Context writes it in the header `traceparent`. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Whoever began the trace records it; where not, nobody does. */
  readonly sampled: boolean;
}

/** Version, trace, span, flags. Later versions may add fields behind these, and are read as far as we know them. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 1;
const LONGEST = 256;

/** Null: it is none. What strangers send in a header is believed as far as it has the form, and decides nothing. */
export function parseTraceparent(text: unknown): TraceContext | null {
  if (typeof text !== "string" || text.length > LONGEST) return null;
  const [, version, traceId, spanId, flags = "", more] = TRACEPARENT.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || (version === "00" && more !== undefined)) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** It is kept where the caller's own words are: every node reads it there, and no column was added for it. */
export function traceparentIn(metadata: Readonly<Record<string, unknown>> | null): string | null {
  const { traceparent } = metadata ?? {};
  return parseTraceparent(traceparent) === null ? null : (traceparent as string);
}
