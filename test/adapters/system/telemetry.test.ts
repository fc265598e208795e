import { describe, expect, it } from "vitest";
import { createTelemetry } from "../../../src/adapters/system/telemetry.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";

const event: TelemetryEvent = { type: "chain.reachable", chainId: 1 };

describe("telemetry", () => {
  it("hands each event to every sink, in order", () => {
    const seen: string[] = [];
    createTelemetry([() => seen.push("a"), () => seen.push("b")]).emit(event);
    expect(seen).toEqual(["a", "b"]);
  });

  it("survives a sink that throws: the others still hear it, and the failure is reported", () => {
    const seen: TelemetryEvent[] = [];
    const errors: unknown[] = [];
    const broken = () => {
      throw new Error("disk full");
    };
    const telemetry = createTelemetry([broken, (one) => seen.push(one), broken], (error) => errors.push(error));
    expect(() => telemetry.emit(event)).not.toThrow();
    expect(seen).toEqual([event]);
    expect(errors.map(String)).toEqual(["Error: disk full", "Error: disk full"]);
  });

  it("survives a reporter that throws, and needs none", () => {
    const broken = () => {
      throw new Error("again");
    };
    expect(() => createTelemetry([broken], broken).emit(event)).not.toThrow();
    expect(() => createTelemetry([broken]).emit(event)).not.toThrow();
  });

  it("is quiet without sinks", () => {
    expect(() => createTelemetry([]).emit(event)).not.toThrow();
  });
});
