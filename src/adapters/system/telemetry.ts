import type { Telemetry, TelemetryEvent } from "../../ports/telemetry.ts";

export type TelemetrySink = (event: TelemetryEvent) => void;

/**
 * Hands each event to every sink, in order. A sink that throws is reported and skipped for that event: watching must
 * never change what is watched.
 */
export function createTelemetry(
  sinks: readonly TelemetrySink[],
  onSinkError: (error: unknown, event: TelemetryEvent) => void = () => undefined,
): Telemetry {
  return {
    emit(event) {
      for (const sink of sinks) {
        try {
          sink(event);
        } catch (error) {
          reportQuietly(onSinkError, error, event);
        }
      }
    },
  };
}

function reportQuietly(
  onSinkError: (error: unknown, event: TelemetryEvent) => void,
  error: unknown,
  event: TelemetryEvent,
): void {
  try {
    onSinkError(error, event);
  } catch {
    // The reporter itself is broken; the application goes on.
  }
}
