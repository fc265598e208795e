import type { Mask } from "../../domain/text/mask.ts";
import type { Telemetry, TelemetryEvent } from "../../ports/telemetry.ts";

export type TelemetrySink = (event: TelemetryEvent) => void;

/**
 * Passes each telemetry event to every sink, in order. An error of a sink is ignored: observation must not affect the
 * node.
 */
export function createTelemetry(sinks: readonly TelemetrySink[], mask: Mask): Telemetry {
  return {
    emit(reported) {
      const event = masked(reported, mask);
      for (const sink of sinks) {
        try {
          sink(event);
        } catch {
          // Ignore the error of one sink: the other sinks still get the event.
        }
      }
    },
  };
}

/**
 * Event fields with text from outside: an endpoint, a database, a hook. All other fields are ids, numbers and
 * constants.
 */
const FOREIGN_WORDS = ["message", "reason", "detail"] as const;

function masked(event: TelemetryEvent, mask: Mask) {
  const said: Partial<Record<(typeof FOREIGN_WORDS)[number], string | null>> = event as object;
  const foreign = FOREIGN_WORDS.filter((name) => typeof said[name] === "string");
  if (foreign.length === 0) return event;
  return { ...event, ...Object.fromEntries(foreign.map((name) => [name, mask(said[name] as string)])) };
}
