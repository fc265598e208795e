/** Traces, if an SDK records them: https://opentelemetry.io. */
export interface Tracer {
  /** Begins a span under the active one, or under the one of the request. Null if no SDK records traces. */
  begin(name: string, count: number): TracedWork | null;
}

export interface TracedWork {
  /** W3C Trace Context, stored so that later work joins the same trace. */
  readonly traceparent: string;
  /** `failure`: null on success. */
  end(failure: string | null): void;
}

export const noTracer: Tracer = { begin: () => null };
