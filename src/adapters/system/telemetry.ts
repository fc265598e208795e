import type { Mask } from "../../domain/mask.ts";
import type { Telemetry, TelemetryEvent } from "../../ports/telemetry.ts";

export type TelemetrySink = (event: TelemetryEvent) => void;

/** Hands each event to every sink, in order. A sink that throws is skipped for that event: watching must never change what is watched. */
export function createTelemetry(sinks: readonly TelemetrySink[], mask: Mask): Telemetry {
  return {
    emit(reported) {
      const event = masked(reported, mask);
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

/** Words that came from elsewhere: an endpoint's, a database's, a hook's. All else is ids, numbers and words of our own. */
const FOREIGN_WORDS = ["message", "reason", "detail"] as const;

function masked(event: TelemetryEvent, mask: Mask): TelemetryEvent {
  const said: Partial<Record<(typeof FOREIGN_WORDS)[number], string | null>> = event as object;
  const foreign = FOREIGN_WORDS.filter((name) => typeof said[name] === "string");
  if (foreign.length === 0) return event;
  return { ...event, ...Object.fromEntries(foreign.map((name) => [name, mask(said[name] as string)])) };
}
