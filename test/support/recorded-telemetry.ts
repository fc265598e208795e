import type { Telemetry, TelemetryEvent } from "../../src/ports/telemetry.ts";

/** Telemetry that records events for a test to read. */
export interface RecordedTelemetry extends Telemetry {
  readonly events: readonly TelemetryEvent[];
  of<T extends TelemetryEvent["type"]>(type: T): readonly Extract<TelemetryEvent, { type: T }>[];
}

export function recordTelemetry(): RecordedTelemetry {
  const events: TelemetryEvent[] = [];
  return {
    events,
    emit: (event) => void events.push(event),
    of: <T extends TelemetryEvent["type"]>(type: T) =>
      events.filter((event): event is Extract<TelemetryEvent, { type: T }> => event.type === type),
  };
}
