import { describe, expect, it } from "vitest";
import { createTelemetry } from "../../../src/adapters/system/telemetry.ts";
import { maskOfShapes } from "../../../src/domain/text/mask.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";

const event: TelemetryEvent = { type: "chain.reachable", chainId: 1 };

describe("telemetry", () => {
  it("passes each event to every sink, in order", () => {
    const seen: string[] = [];
    createTelemetry([() => seen.push("a"), () => seen.push("b")], maskOfShapes).emit(event);
    expect(seen).toEqual(["a", "b"]);
  });

  it("passes the event to the other sinks if one sink throws", () => {
    const seen: TelemetryEvent[] = [];
    const broken = () => {
      throw new Error("disk full");
    };
    const telemetry = createTelemetry([broken, (one) => seen.push(one), broken], maskOfShapes);
    expect(() => telemetry.emit(event)).not.toThrow();
    expect(seen).toEqual([event]);
  });

  it("does nothing without sinks", () => {
    expect(() => createTelemetry([], maskOfShapes).emit(event)).not.toThrow();
  });
});
