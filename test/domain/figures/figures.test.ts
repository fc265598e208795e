import { describe, expect, it } from "vitest";
import { bucketStart, Figures } from "../../../src/domain/figures/figures.ts";

describe("figures of a bucket", () => {
  const done = { isFailed: false, owner: "shop", fees: 7n, mined: { ageMs: 15_000, offered: 30n } };

  it("count outcomes, spend by key, and offers", () => {
    const figures = new Figures();
    figures.complete(done);
    figures.complete({ ...done, owner: null, isFailed: true, fees: 2n ** 80n, mined: null });
    figures.complete({ ...done, mined: { ageMs: 15_000, offered: 60n } });
    expect(figures).toMatchObject({ completed: 3, failed: 1, fees: 14n + 2n ** 80n });
    expect([...figures.keys]).toEqual([
      ["shop", { completed: 2, fees: 14n }],
      [null, { completed: 1, fees: 2n ** 80n }],
    ]);
    expect(figures.offered.shown()).toEqual({ avg: 45n, max: 60n });
    expect(figures.baseFee.shown()).toBeNull();
  });

  it("show times to finality within a tenth, at any length", () => {
    for (const ageMs of [0, 1, 2, 3, 10, 999, 12_345, 86_400_000, 10 ** 10]) {
      const figures = new Figures();
      figures.complete({ ...done, mined: { ageMs, offered: 1n } });
      const shown = figures.finalityMs(0.5) as number;
      expect(Math.abs(shown - ageMs)).toBeLessThanOrEqual(Math.max(1, ageMs * 0.1));
    }
    const figures = new Figures();
    for (let n = 1; n <= 100; n++) figures.complete({ ...done, mined: { ageMs: n * 1_000, offered: 1n } });
    expect(figures.finalityMs(0.5)).toBeGreaterThan(45_000);
    expect(figures.finalityMs(0.5)).toBeLessThan(55_500);
    expect(figures.finalityMs(0.95)).toBeGreaterThan(85_000);
    expect(figures.finalityMs(0.95)).toBeLessThan(105_000);
    expect(new Figures().finalityMs(0.5)).toBeNull();
  });

  it("merge to what one bucket would have counted, also from their stored form", () => {
    const parts = [new Figures(), new Figures(), new Figures()] as const;
    const whole = new Figures();
    for (const [n, part] of parts.entries()) {
      for (const each of [part, whole]) {
        each.created += n;
        each.stuck += 1;
        each.reorged += n;
        each.complete({
          ...done,
          owner: n === 1 ? null : "shop",
          isFailed: n === 2,
          mined: { ageMs: 10 ** n, offered: 5n },
        });
        each.baseFee.add(BigInt(10 * n));
        each.trouble("STUCK");
      }
    }
    const merged = new Figures();
    for (const part of parts) merged.merge(JSON.parse(JSON.stringify(part.stored(), digits), revive));
    expect(merged.stored()).toEqual(whole.stored());
  });

  it("store nothing for what was not counted", () => {
    expect(new Figures().stored()).toEqual({ created: 0, completed: 0, failed: 0, fees: 0n, detail: {} });
  });

  it("begin at multiples of their step", () => {
    const at = new Date("2026-11-02T09:59:59.999Z");
    expect(bucketStart(at, 60).toISOString()).toBe("2026-11-02T09:59:00.000Z");
    expect(bucketStart(at, 3_600).toISOString()).toBe("2026-11-02T09:00:00.000Z");
  });
});

const digits = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value);
const revive = (name: string, value: unknown) => (name === "fees" ? BigInt(value as string) : value);
