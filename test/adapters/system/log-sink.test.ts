import { describe, expect, it } from "vitest";
import { LOG_LEVELS, type LogLevel } from "../../../src/adapters/system/log-level.ts";
import { createLogSink } from "../../../src/adapters/system/log-sink.ts";
import type { LogFields, LogMethod } from "../../../src/adapters/system/logger.ts";
import type { Checksum } from "../../../src/domain/text/checksum.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";

const lane = { chainId: 31337, signer: "0x00000000000000000000000000000000000000aa" } as const;
const txHash = `0x${"12".repeat(32)}` as const;
const transition: TelemetryEvent = {
  type: "tx.transition",
  lane,
  txId: "t1",
  nonce: 4,
  event: "sign",
  from: "ALLOCATED",
  state: "TRACKING",
  subState: "PENDING",
  txHash,
  nodeId: "node-9",
  token: 3,
};

interface Line {
  readonly level: LogMethod;
  readonly fields: LogFields;
  readonly message: string;
}

function capture(level: LogLevel = "trace", checksum?: Checksum) {
  const lines: Line[] = [];
  const enabled = (one: LogMethod) => LOG_LEVELS.indexOf(one) >= LOG_LEVELS.indexOf(level);
  const log = {
    enabled,
    log: (l: LogMethod, fields: LogFields, message: string) => void lines.push({ level: l, fields, message }),
    logMembers: (l: LogMethod, members: string, message: string) =>
      void lines.push({ level: l, fields: JSON.parse(`{${members}}`), message }),
  };
  return { lines, sink: createLogSink({ log, nodeId: "node-1", ...(checksum && { checksum }) }) };
}

function lineFor(event: TelemetryEvent): Line {
  const { sink, lines } = capture();
  sink(event);
  expect(lines).toHaveLength(1);
  return lines[0] as Line;
}

describe("the log sink for telemetry events", () => {
  it("logs a state transition at level info with the documented fields", () => {
    const { level, fields, message } = lineFor(transition);
    expect(level).toBe("info");
    expect(message).toBe("sign");
    expect(fields).toMatchObject({
      chainId: 31337,
      signer: lane.signer,
      txId: "t1",
      nodeId: "node-9",
      fencingToken: 3,
      fromState: "ALLOCATED",
      state: "TRACKING",
      nonce: 4,
      txHash,
    });
  });

  it("writes valid JSON for events with null and absent fields", () => {
    const { fields } = lineFor({ ...transition, from: null, subState: null, txHash: null, nonce: null, ageMs: 1.5 });
    expect(fields).toEqual({
      event: "tx.transition",
      chainId: 31337,
      signer: lane.signer,
      txId: "t1",
      nodeId: "node-9",
      fencingToken: 3,
      fromState: null,
      state: "TRACKING",
      subState: null,
      nonce: null,
      txHash: null,
      ageMs: 1.5,
    });
    expect(lineFor(transition).fields).not.toHaveProperty("ageMs");
  });

  it("writes lane and fencing token as the same flat fields for every event", () => {
    const { fields } = lineFor({ type: "lease.fenced", lane, token: 8, write: "broadcast", stoppedBy: "database" });
    expect(fields).toEqual({
      event: "lease.fenced",
      nodeId: "node-1",
      chainId: 31337,
      signer: lane.signer,
      fencingToken: 8,
      write: "broadcast",
      stoppedBy: "database",
    });
  });

  it.each<[TelemetryEvent, LogMethod]>([
    [{ type: "lease.acquire", lane, result: "takenOver", token: 2 }, "debug"],
    [{ type: "lanes.taken", acquired: 9_999, takenOver: 1 }, "info"],
    [{ type: "lane.resumed", lane, token: 1, tracking: 0, allocated: 0 }, "debug"],
    [{ type: "lane.resumed", lane, token: 1, tracking: 0, allocated: 1 }, "info"],
    [{ type: "lease.acquire", lane, result: "kept", token: 2 }, "debug"],
    [{ type: "lease.fenced", lane, token: 2, write: "sign", stoppedBy: "deadline" }, "warn"],
    [{ type: "instance.lost", instanceId: "i" }, "error"],
    [{ type: "store.historyChanged", detail: "timeline 2" }, "error"],
    [
      { type: "rpc.request", chainId: 1, endpoint: 0, method: "eth_call", result: "ok", calls: 1, durationMs: 1 },
      "trace",
    ],
    [{ type: "create.answered", result: "created", durationMs: 1 }, "debug"],
    [{ type: "alert", severity: "WARNING", code: "NONCE_DRIFT", message: "m" }, "warn"],
    [{ type: "alert", severity: "ERROR", code: "NONCE_DRIFT", message: "m" }, "error"],
    [{ type: "alert", severity: "CRITICAL", code: "NONCE_DRIFT", message: "m" }, "fatal"],
  ])("chooses the log level by the event: %o", (event, level) => {
    expect(lineFor(event).level).toBe(level);
  });

  it("warns about refused submissions only", () => {
    const submission = {
      type: "submit.answered",
      lane,
      txId: "t",
      nonce: 1,
      txHash,
      detail: null,
      first: true,
      sinceCreatedMs: 3,
    } as const;
    expect(lineFor({ ...submission, answer: "alreadyKnown" }).level).toBe("debug");
    expect(lineFor({ ...submission, answer: "underpriced" }).level).toBe("warn");
  });

  it("writes one line for lanes that are acquired together", () => {
    expect(lineFor({ type: "lanes.taken", acquired: 9_999, takenOver: 1 }).message).toBe("took 10000 lanes");
    expect(lineFor({ type: "lanes.taken", acquired: 0, takenOver: 1 }).message).toBe("took 1 lane");
  });

  // protects [Explained, and said aloud] src/adapters/system/log-sink.ts
  it("writes an alert's text only as the message, not as a field too", () => {
    const { fields, message } = lineFor({
      type: "alert",
      severity: "ERROR",
      code: "NONCE_DRIFT",
      message: "look",
      lane,
    });
    expect(message).toBe("look");
    expect(fields).not.toHaveProperty("message");
    expect(fields).toMatchObject({ code: "NONCE_DRIFT", chainId: 31337 });
  });

  it("builds no fields for a line that is not logged", () => {
    const { sink, lines } = capture("warn", () => {
      throw new Error("asked for a field of a silent line");
    });
    expect(() => sink(transition)).not.toThrow();
    expect(lines).toEqual([]);
  });

  it("computes the checksum address once per signer", () => {
    let asked = 0;
    const { sink, lines } = capture("info", (address) => {
      asked++;
      return `0x${address.slice(2).toUpperCase()}`;
    });
    sink(transition);
    sink(transition);
    expect(asked).toBe(1);
    expect(lines[1]?.fields.signer).toBe(`0x${lane.signer.slice(2).toUpperCase()}`);
  });
});
