import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createGasOracle } from "../../../src/adapters/webhooks/gas-oracle.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { type RecordedTelemetry, recordTelemetry } from "../../support/recorded-telemetry.ts";
import { WebhookReceiver } from "../../support/webhook-receiver.ts";

const GWEI = 1_000_000_000n;

let receiver: WebhookReceiver;
let clock: ManualClock;
let telemetry: RecordedTelemetry;
let url: string;
beforeEach(async () => {
  receiver = new WebhookReceiver();
  clock = createManualClock();
  telemetry = recordTelemetry();
  url = await receiver.listen();
});
afterEach(() => receiver.close());

type Unit = "wei" | "gwei";

function oracle(fields = "maxFeePerGas/maxPriorityFeePerGas", unit: Unit = "wei") {
  const [maxFeePerGas = "", maxPriorityFeePerGas = ""] = fields.split("/");
  const paths = { maxFeePerGas, maxPriorityFeePerGas };
  return createGasOracle({ url, fields: paths, unit, chainId: 137, clock, telemetry, fetch: globalThis.fetch });
}

const answering = (body: unknown): void => {
  receiver.answer = (response) => response.end(typeof body === "string" ? body : JSON.stringify(body));
};

describe("the gas oracle client", () => {
  it.each<[string, unknown, string, Unit, bigint, bigint | undefined]>([
    ["decimal wei", { maxFeePerGas: "30000000000", maxPriorityFeePerGas: "1" }, "", "wei", 30n * GWEI, 1n],
    ["hexadecimal wei", { maxFeePerGas: "0x6fc23ac00" }, "", "wei", 30n * GWEI, undefined],
    ["gwei deep inside", { s: { max: 31.25, tip: "30" } }, "s.max/s.tip", "gwei", 31_250_000_000n, 30n * GWEI],
    ["gwei with more digits than there are wei", { a: "1.1234567891" }, "a/b", "gwei", 1_123_456_789n, undefined],
  ])("reads fees given as %s", async (_, body, fields, unit, maxFeePerGas, tip) => {
    answering(body);
    const expected = { maxFeePerGas, ...(tip === undefined ? {} : { maxPriorityFeePerGas: tip }), isFixed: false };
    expect(await oracle(fields === "" ? undefined : fields, unit).offer()).toEqual(expected);
  });

  it.each<[string, unknown, string]>([
    ["is no JSON", "<html>", "the server's response is not JSON"],
    ["lacks the fee", { fast: 1 }, "the gas oracle's response has no maxFeePerGas"],
    ["is negative", { maxFeePerGas: -1 }, "maxFeePerGas in the gas oracle's response is not a price"],
    ["is too large a number", { maxFeePerGas: 1e40 }, "maxFeePerGas in the gas oracle's response is not a price"],
    ["is a word", { maxFeePerGas: "cheap" }, "maxFeePerGas in the gas oracle's response is not a price"],
    [
      "has an invalid tip",
      { maxFeePerGas: 1, maxPriorityFeePerGas: {} },
      "maxPriorityFeePerGas in the gas oracle's response is not a price",
    ],
    [
      "inherits what it lacks",
      { maxFeePerGas: 1, maxPriorityFeePerGas: [] },
      "maxPriorityFeePerGas in the gas oracle's response is not a price",
    ],
  ])("returns no fee and raises one alert if the response %s", async (_, body, reason) => {
    answering(body);
    const asked = oracle();
    expect(await asked.offer()).toBeNull();
    await clock.advance(3_000);
    expect(await asked.offer()).toBeNull();
    const alerts = telemetry.events.filter(({ type }) => type === "alert");
    expect(alerts).toEqual([expect.objectContaining({ severity: "WARNING", code: "GAS_ORACLE_AWAY" })]);
    expect(JSON.stringify(alerts)).toContain(reason);
  });

  it("sends at most one request every three seconds", async () => {
    receiver.answer = (response) => response.writeHead(503).end();
    const asked = oracle();
    expect(await asked.offer()).toBeNull();
    answering({ maxFeePerGas: 7 });
    await clock.advance(2_999);
    expect(await asked.offer()).toBeNull();
    expect(receiver.received.length).toBe(1);
    await clock.advance(1);
    expect(await asked.offer()).toEqual({ maxFeePerGas: 7n, isFixed: false });
    const [said, over, ...more] = telemetry.events;
    expect([said, over]).toMatchObject([{ type: "alert" }, { type: "alert.resolved", code: "GAS_ORACLE_AWAY" }]);
    expect([(over as { chainId?: number }).chainId, more]).toEqual([(said as { chainId?: number }).chainId, []]);
  });

  it("abandons a request without a response after two seconds", async () => {
    const received = new Promise<void>((resolve) => {
      receiver.answer = () => resolve();
    });
    const offered = oracle().offer();
    await received;
    await clock.advance(2_000);
    expect(await offered).toBeNull();
  });

  it("follows no redirect", async () => {
    receiver.answer = (response, { path }) => {
      if (path === "/hook") response.writeHead(302, { location: "/other" }).end();
      else response.end(JSON.stringify({ maxFeePerGas: 1 }));
    };
    expect(await oracle().offer()).toBeNull();
    expect(receiver.received.map(({ path }) => path)).toEqual(["/hook"]);
  });
});
