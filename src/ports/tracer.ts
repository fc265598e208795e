/** Records work as trace spans, if an OpenTelemetry SDK is in use: https://opentelemetry.io. */
export interface Tracer {
  /** Begins a span under the active span, or under that of the caller's request. Null if no SDK records traces. */
  begin(name: string, count: number): TracedWork | null;
}

export interface TracedWork {
  /** W3C Trace Context of the span, stored so that later work joins the same trace. */
  readonly traceparent: string;
  /** Ends the span. `failure`: null on success. */
  end(failure: string | null): void;
}

export const noTracer: Tracer = { begin: () => null };
