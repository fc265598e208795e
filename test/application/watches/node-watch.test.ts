/**
 * Conditions that concern a node as a whole, not a single lane. Each is reported once while it lasts and once when it
 * is over.
 */
import { afterEach, describe, expect, it } from "vitest";
import { NodeWatch } from "../../../src/application/loops/stuck-watch.ts";
import { StandingAlerts } from "../../../src/application/standing-alerts.ts";
import { laneKey } from "../../../src/domain/lane.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { CHAIN_ID, SIGNER, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

type Said = readonly (readonly [code: string, severity: string])[];

function said(events: readonly TelemetryEvent[]): Said {
  return events.flatMap((event): Said => {
    if (event.type === "alert") return [[event.code, event.severity]];
    return event.type === "alert.resolved" ? [[event.code, "resolved"]] : [];
  });
}

const lane = { chainId: CHAIN_ID, signer: SIGNER };
const FENCED: TelemetryEvent = { type: "lease.fenced", lane, token: 1, write: "sign", stoppedBy: "database" };

function submission(first: boolean): TelemetryEvent {
  const tx = { lane, txId: "t", nonce: 1, txHash: null };
  return { type: "submit.answered", ...tx, answer: "accepted", detail: null, first, sinceCreatedMs: null };
}

/** A node without chains and lanes, so that only the conditions of the node itself are checked. */
function quietWatch() {
  const clock = createManualClock();
  const events: TelemetryEvent[] = [];
  const watch = new NodeWatch({ clock, telemetry: { emit: (event) => void events.push(event) } });
  const look = (backlog = 0): void => watch.look(new Map(), { onChain: () => [] }, backlog);
  const repeat = (event: TelemetryEvent, times: number): void => {
    for (let n = 0; n < times; n++) watch.telemetry.emit(event);
  };
  return { clock, events, look, repeat };
}

describe("an alert about fenced writes", () => {
  it("is not raised after one or two takeovers", () => {
    const { events, look, repeat } = quietWatch();
    repeat(FENCED, 9);
    look();
    expect(said(events)).toEqual([]);
  });

  // protects [Signals] src/application/standing-alerts.ts
  it("is raised once while fenced writes keep occurring", async () => {
    const { clock, events, look, repeat } = quietWatch();
    for (let minute = 0; minute < 20; minute++) {
      repeat(FENCED, 5);
      look();
      await clock.advance(60_000);
    }
    expect(said(events)).toEqual([["FENCED_SURGE", "ERROR"]]);
    await clock.advance(300_000);
    look();
    look();
    expect(said(events)).toEqual([
      ["FENCED_SURGE", "ERROR"],
      ["FENCED_SURGE", "resolved"],
    ]);
  });
});

describe("an alert about resubmissions", () => {
  it("is not raised if they are few compared with all sends of the node", () => {
    const { events, look, repeat } = quietWatch();
    repeat(submission(true), 10_000);
    repeat(submission(false), 200);
    look();
    expect(said(events)).toEqual([]);
  });

  it("is raised if resubmissions are most of the node's sends", async () => {
    const { clock, events, look, repeat } = quietWatch();
    repeat(submission(true), 10);
    repeat(submission(false), 50);
    look();
    expect(said(events)).toEqual([["RESUBMIT_SURGE", "WARNING"]]);
    await clock.advance(300_000);
    look();
    expect(said(events).at(-1)).toEqual(["RESUBMIT_SURGE", "resolved"]);
  });
});

describe("an alert about unread receipts", () => {
  it("is raised if the number of unread receipts grows for five minutes", async () => {
    const { clock, events, look } = quietWatch();
    const minute = async (backlog: number): Promise<void> => {
      for (let n = 0; n < 6; n++) {
        look(backlog);
        await clock.advance(10_000);
      }
    };
    for (let n = 1; n <= 7; n++) await minute(5 * n);
    expect(said(events)).toEqual([["RECEIPT_BACKLOG_GROWING", "ERROR"]]);
    for (let n = 0; n < 2; n++) await minute(0);
    look(0);
    expect(said(events).at(-1)).toEqual(["RECEIPT_BACKLOG_GROWING", "resolved"]);
  });
});

describe("an alert about a lane", () => {
  it("is resolved by a node that no longer owns the lane", () => {
    const events: TelemetryEvent[] = [];
    const standing = new StandingAlerts({ emit: (event) => void events.push(event) });
    standing.raise({ severity: "WARNING", code: "LOW_BALANCE", message: "m", lane });
    standing.raise({ severity: "CRITICAL", code: "CHAIN_DOWN", message: "m", chainId: CHAIN_ID });
    standing.leave((key) => key === laneKey(lane));
    expect(events).toHaveLength(2);
    standing.leave(() => false);
    standing.leave(() => false);
    expect(said(events).slice(2)).toEqual([["LOW_BALANCE", "resolved"]]);
  });

  it("stays one alert while the lane's lowest open transaction changes", () => {
    const events: TelemetryEvent[] = [];
    const standing = new StandingAlerts({ emit: (event) => void events.push(event) });
    const old = { severity: "WARNING", code: "HEAD_OF_LINE_OLD", message: "m", lane } as const;
    for (const txId of ["a", "b"]) standing.raise({ ...old, txId });
    standing.resolve({ code: old.code, lane }, "mined");
    expect(events).toMatchObject([{ txId: "a" }, { type: "alert.resolved", txId: "a", message: "mined" }]);
  });
});

describe("the alerts of a node", () => {
  let world: World;
  afterEach(() => world.close());

  async function start(options: WorldOptions = {}): Promise<WorldNode> {
    world = new World(options);
    return world.startNode();
  }
  const ofCode = ({ events }: WorldNode, code: string): Said => said(events).filter(([name]) => name === code);

  // protects [Signals] src/application/standing-alerts.ts
  it("report a chain without a responding endpoint once as CRITICAL", async () => {
    const node = await start();
    await world.clock.advance(1_000);
    const heal = node.faults.inject({ kind: "unavailable" });
    await world.clock.advance(9_000);
    expect(ofCode(node, "CHAIN_DOWN")).toEqual([]);
    await world.clock.advance(120_000);
    expect(ofCode(node, "CHAIN_DOWN")).toEqual([["CHAIN_DOWN", "CRITICAL"]]);
    heal();
    await world.until(() => ofCode(node, "CHAIN_DOWN").length === 2);
    expect(ofCode(node, "CHAIN_DOWN").at(-1)).toEqual(["CHAIN_DOWN", "resolved"]);
    // A later short outage counts as a new one, and is too short for an alert.
    const again = node.faults.inject({ kind: "unavailable" });
    await world.clock.advance(5_000);
    again();
    await world.clock.advance(30_000);
    expect(ofCode(node, "CHAIN_DOWN")).toHaveLength(2);
  });

  it("report a chain without new blocks once as ERROR", async () => {
    const node = await start();
    await world.clock.advance(60_000);
    expect(ofCode(node, "CHAIN_STALLED")).toEqual([]);
    world.holdBlocks();
    await world.clock.advance(300_000);
    expect(ofCode(node, "CHAIN_STALLED")).toEqual([["CHAIN_STALLED", "ERROR"]]);
    const { items } = await world.settle(node.node.api.attention());
    expect(items).toMatchObject([{ code: "CHAIN_STALLED", severity: "ERROR", chainId: CHAIN_ID, waiting: 0 }]);
    const { chains } = await world.settle(node.node.api.overview());
    expect(chains).toMatchObject([{ chainId: CHAIN_ID, reachable: true, stalled: true }]);
    world.releaseBlocks();
    await world.until(() => ofCode(node, "CHAIN_STALLED").length === 2);
    expect(ofCode(node, "CHAIN_STALLED").at(-1)).toEqual(["CHAIN_STALLED", "resolved"]);
    await world.clock.advance(1_000);
    expect((await world.settle(node.node.api.attention())).items).toEqual([]);
  });

  it("do not report an on-demand chain as stalled while a kill stops all sends", async () => {
    const node = await start();
    world.holdBlocks();
    const actionRequest = { signer: null, request: { reason: "drill" }, actor: "operator:ops" };
    await world.settle(node.node.api.kill(actionRequest));
    await world.settle(node.node.api.create(transfer()));
    await world.clock.advance(300_000);
    expect(ofCode(node, "CHAIN_STALLED")).toEqual([]);
    await world.settle(node.node.api.endKill(actionRequest));
    await world.clock.advance(130_000);
    expect(ofCode(node, "CHAIN_STALLED")).toEqual([["CHAIN_STALLED", "ERROR"]]);
  });

  it("about an old transaction are resolved when the lane's transactions are mined", async () => {
    const node = await start({ settings: { alertHeadAgeMs: 5_000, alertOldestAgeMs: 5_000, alertPendingDepth: 1 } });
    world.holdBlocks();
    await world.settle(Promise.all([1, 2].map(() => node.node.api.create(transfer()))));
    const codes = ["HEAD_OF_LINE_OLD", "PENDING_OLD", "PENDING_DEEP"];
    await world.until(() => codes.every((code) => ofCode(node, code).length === 1));
    await world.clock.advance(20_000);
    world.releaseBlocks();
    await world.allSettled(2);
    await world.clock.advance(3_000);
    for (const code of codes) {
      expect(ofCode(node, code)).toEqual([
        [code, "WARNING"],
        [code, "resolved"],
      ]);
    }
  });

  it("about a lane are raised again by its next owner", async () => {
    const node = await start({ settings: { alertHeadAgeMs: 5_000 } });
    world.holdBlocks();
    await world.settle(node.node.api.create(transfer()));
    await world.until(() => ofCode(node, "HEAD_OF_LINE_OLD").length === 1);
    const closing = world.settle(node.node.close());
    const next = await world.startNode();
    await closing;
    await world.until(() => ofCode(next, "HEAD_OF_LINE_OLD").length === 1);
  });
});
