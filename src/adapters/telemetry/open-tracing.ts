/**
 * Records traces through OpenTelemetry's API package, which the user installs. Without the package, or without a
 * registered SDK, nothing is recorded and no trace context is read. The user configures the exporter (docs/traces.md).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { formatTraceparent, parseTraceparent, type TraceContext } from "../../domain/text/trace-context.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";
import type { Tracer } from "../../ports/tracer.ts";
import { createStageSpans, type SpanReport } from "./stage-spans.ts";

type Api = typeof import("@opentelemetry/api");
type Span = import("@opentelemetry/api").Span;

interface TracingOptions {
  readonly clock: Pick<Clock, "now">;
  readonly version: string;
  /** OpenTelemetry's API package; null if it is not installed. */
  readonly api?: Api | null;
}

export interface Tracing {
  readonly tracer: Tracer;
  readonly sink: (event: TelemetryEvent) => void;
  /** Runs `work` in the trace of this `traceparent` header, unless another span is active. */
  within(traceparent: unknown, work: () => void): void;
  /** Sets how to read the trace context of a transaction that another process created. */
  connect(read: (txId: string) => Promise<string | null>): void;
}

/** Opens tracing; null if OpenTelemetry's API package is not installed. */
export async function openTracing(options: TracingOptions): Promise<Tracing | null> {
  const api = options.api === undefined ? await loadApi() : options.api;
  return api === null ? null : tracingWith(api, options);
}

async function loadApi(): Promise<Api | null> {
  try {
    return await import("@opentelemetry/api");
  } catch {
    return null;
  }
}

function tracingWith(api: Api, { clock, version }: TracingOptions): Tracing {
  const received = new AsyncLocalStorage<TraceContext>();
  // Look the tracer up each time, because an SDK may be registered after the node was created.
  const tracerOf = () => api.trace.getTracer("fencepost", version);
  const beneath = ({ traceId, spanId, sampled }: TraceContext) => {
    const traceFlags = sampled ? api.TraceFlags.SAMPLED : api.TraceFlags.NONE;
    return api.trace.setSpanContext(api.ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
  };
  const endSpan = (span: Span, failure: string | null, endMs?: number) => {
    if (failure !== null) span.setStatus({ code: api.SpanStatusCode.ERROR, message: failure });
    span.end(endMs);
  };
  const report = ({ name, parent, sinceMs, untilMs, attributes, failure }: SpanReport) => {
    const span = tracerOf().startSpan(name, { startTime: sinceMs, attributes: { ...attributes } }, beneath(parent));
    endSpan(span, failure, untilMs);
  };
  const stages = createStageSpans({ clock, report, isOn: () => isRegistered(api) });
  const tracer: Tracer = {
    begin(name, count) {
      if (!isRegistered(api)) return null;
      const active = api.context.active();
      const sent = received.getStore();
      const isActive = api.trace.getSpanContext(active) !== undefined;
      const parent = isActive || sent === undefined ? active : beneath(sent);
      const span = tracerOf().startSpan(name, { attributes: { "fencepost.count": count } }, parent);
      const { traceId, spanId, traceFlags } = span.spanContext();
      const sampled = (traceFlags & api.TraceFlags.SAMPLED) !== 0;
      return {
        traceparent: formatTraceparent({ traceId, spanId, sampled }),
        end: (failure) => endSpan(span, failure),
      };
    },
  };
  return {
    tracer,
    ...stages,
    within(traceparent, work) {
      const parent = parseTraceparent(traceparent);
      if (parent === null) work();
      else received.run(parent, work);
    },
  };
}

/** True if an SDK is registered: otherwise the API's default provider has no delegate. */
function isRegistered(api: Api) {
  const provider = api.trace.getTracerProvider();
  return !(provider instanceof api.ProxyTracerProvider) || provider.getDelegateTracer("fencepost") !== undefined;
}
