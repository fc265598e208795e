/** Traces, where somebody records them: https://opentelemetry.io. */
export interface Tracer {
  /**
   * Begins a span beneath the one that is active, or that came with the request. Null: nobody records traces, and nothing is to
   * be done for one.
   */
  begin(name: string, count: number): TracedWork | null;
}

export interface TracedWork {
  /** W3C Trace Context: by this, whoever goes on with the work later says that it belongs here. */
  readonly traceparent: string;
  /** `failure`: null where it was done. */
  end(failure: string | null): void;
}

export const noTracer: Tracer = { begin: () => null };
