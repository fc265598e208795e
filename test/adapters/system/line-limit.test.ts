import { describe, expect, it } from "vitest";
import { type LeftOut, lineLimit } from "../../../src/adapters/system/line-limit.ts";
import { createLogSink } from "../../../src/adapters/system/log-sink.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";

const lane = { chainId: 1, signer: "0x00000000000000000000000000000000000000aa" } as const;
const tx = { lane, txId: "t", nonce: 1, txHash: null } as const;

function limited() {
  const clock = createManualClock();
  const said: LeftOut[] = [];
  const isOneTooMany = lineLimit(clock, (left) => void said.push(left));
  const write = (message: string, times: number): number =>
    Array.from({ length: times }).filter(() => !isOneTooMany({ event: "e", level: "warn", message })).length;
  return { clock, said, write };
}

describe("the limit on log lines", () => {
  it("reports the number of omitted lines after the first twenty lines of a kind", async () => {
    const { clock, said, write } = limited();
    expect(write("down", 1_000)).toBe(20);
    expect(said).toEqual([]);
    await clock.advance(10_000);
    expect(said).toEqual([{ event: "e", level: "warn", message: "down", times: 980 }]);
    expect(write("down", 5)).toBe(5);
    await clock.advance(60_000);
    expect(said).toHaveLength(1);
  });

  it("counts each kind of line separately, up to a maximum number of kinds", async () => {
    const { clock, said, write } = limited();
    expect(write("a", 20) + write("b", 20)).toBe(40);
    let written = 0;
    for (let n = 0; n < 10_000; n++) written += write(`by a stranger: ${n}`, 1);
    expect(written).toBeLessThan(150);
    await clock.advance(10_000);
    expect(said.reduce((sum, { times }) => sum + times, 0)).toBe(10_000 - written);
  });
});

describe("the log of a node whose chain is unreachable", () => {
  function sinkWith() {
    const clock = createManualClock();
    const lines: { readonly message: string; readonly fields: object }[] = [];
    const log = {
      enabled: () => true,
      log: (_: string, fields: object, message: string) => void lines.push({ message, fields }),
      logMembers: (_: string, members: string, message: string) =>
        void lines.push({ message, fields: JSON.parse(`{${members}}`) }),
    };
    return { clock, lines, sink: createLogSink({ log, nodeId: "node-1", clock }) };
  }

  // protects [Signals] src/adapters/system/line-limit.ts, src/adapters/system/log-sink.ts
  it("has a limited number of lines, however many submissions fail", async () => {
    const { clock, lines, sink } = sinkWith();
    const failed: TelemetryEvent = {
      type: "submit.answered",
      ...tx,
      answer: "unknown",
      detail: "timeout",
      first: true,
      sinceCreatedMs: null,
    };
    for (let n = 0; n < 5_000; n++) sink(failed);
    await clock.advance(10_000);
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toMatchObject({ fields: { event: "submit.answered", nodeId: "node-1", times: 4_980 } });
    expect(lines.at(-1)?.message).toBe("node answered unknown (4980 more like this in ten seconds)");
  });

  // protects [Signals] src/adapters/system/line-limit.ts, src/adapters/system/log-sink.ts
  it("always includes every write and every alert", () => {
    const { lines, sink } = sinkWith();
    const moved = { type: "tx.transition", ...tx, event: "resubmit", from: "TRACKING", state: "TRACKING" } as const;
    for (let n = 0; n < 500; n++) sink({ ...moved, subState: "STALE", nodeId: "node-1", token: 3 });
    for (let n = 0; n < 500; n++) sink({ type: "alert", severity: "ERROR", code: "TX_STUCK", message: "m", lane });
    expect(lines).toHaveLength(1_000);
  });
});
