import { describe, expect, it, onTestFinished } from "vitest";
import { arrivalsOf } from "../../../src/adapters/http/admission/admission-queue.ts";
import { createHttpServer } from "../../../src/adapters/http/server.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { OPEN } from "../../../src/application/loops/reception.ts";
import { httpOptions } from "../../support/http-app.ts";

describe("new HTTP connections", () => {
  it("count as a burst once two event loop turns in a row accept connections", () => {
    let turnEnded: () => void = () => undefined;
    const arrivals = arrivalsOf({ soon: (callback) => (turnEnded = callback) });
    const turn = (brings: number) => {
      for (let n = 0; n < brings; n++) arrivals.came();
      const keptComing = arrivals.keepComing;
      turnEnded();
      return keptComing;
    };
    expect([turn(1), turn(0), turn(1), turn(1), turn(1), turn(0), turn(0), turn(1)]).toEqual([
      false,
      false,
      false,
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  // protects [Short of time] src/adapters/http/admission/admission-queue.ts
  it("are served together if they are opened at the same time", async () => {
    const waiting: number[] = [];
    const queue = {
      admittance: () => OPEN,
      turnMs: Number.POSITIVE_INFINITY,
      limit: 1_000,
      onRefused: () => undefined,
      onWaiting: (count: number) => void waiting.push(count),
    };
    const server = createHttpServer(httpOptions({}, { admission: queue, clock: systemClock }));
    onTestFinished(() => server.close(0));
    const { url } = await server.listen("127.0.0.1", 0);
    const asked = Array.from({ length: 50 }, () => fetch(`${url}/api/v1/tx`, { method: "POST", body: "{}" }));
    await Promise.all(asked);
    expect(Math.max(0, ...waiting)).toBeGreaterThan(5);
    expect(waiting.at(-1)).toBe(0);
  });
});
