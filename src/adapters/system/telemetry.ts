import type { Telemetry, TelemetryEvent } from "../../ports/telemetry.ts";

export type TelemetrySink = (event: TelemetryEvent) => void;

/** Hands each event to every sink, in order. A sink that throws is skipped for that event: watching must never change what is watched. */
export function createTelemetry(sinks: readonly TelemetrySink[]): Telemetry {
  return {
    emit(event) {
      for (const sink of sinks) {
        try {
          sink(event);
        } catch {
          // The other sinks still hear of it.
        }
      }
    },
  };
}
