import { describe, expect, it } from "vitest";
import {
  isGone,
  type LockLook,
  mayJudge,
  type OwnSession,
  type Sighting,
  sight,
  UNSEEN,
} from "../../../src/domain/chain/witness.ts";

const look = (lock: LockLook["lock"], askedMs: number, counter = 1): LockLook => ({
  lock,
  counter,
  askedMs,
  answeredMs: askedMs + 10,
});
const sighted = (...looks: readonly LockLook[]): Sighting => looks.reduce(sight, UNSEEN);
const own = (overrides: Partial<OwnSession> = {}): OwnSession => ({
  sinceMs: 0,
  serverUpMs: 86_400_000,
  isFirst: false,
  missed: [],
  ...overrides,
});

describe("the session lock of a node", () => {
  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts
  it("counts as gone if two checks at least 300 ms apart do not find it", () => {
    const sighting = sighted(look("held", 0), look("gone", 500));
    expect(isGone(sighting, look("gone", 809))).toBe(false);
    expect(isGone(sighting, look("gone", 810))).toBe(true);
  });

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts
  it("does not count as gone after a single check, however long the check took", () => {
    const slow = { ...look("gone", 500), answeredMs: 60_000 };
    expect(isGone(sighted(look("held", 0), slow), slow)).toBe(false);
  });

  it("does not count as gone if the newest check finds it held or not recorded", () => {
    for (const lock of ["held", "none"] as const) {
      expect(isGone(sighted(look("gone", 0), look(lock, 500)), look(lock, 1_000))).toBe(false);
    }
  });

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts
  it("counts as gone only after two checks since the node's last heartbeat", () => {
    const sighting = sighted(look("gone", 0, 1), look("gone", 500, 2));
    expect(isGone(sighting, look("gone", 700, 2))).toBe(false);
    expect(isGone(sighting, look("gone", 810, 2))).toBe(true);
  });
});

describe("a node that checks session locks", () => {
  const seen = sighted(look("held", 0));

  it("declares no other node dead without a database session of its own", () => {
    expect(mayJudge(null, seen, 1_000_000)).toBe(false);
  });

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts
  it("may declare another node dead after seeing that node's lock", () => {
    expect(mayJudge(own(), seen, 1_999)).toBe(false);
    expect(mayJudge(own(), seen, 2_000)).toBe(true);
  });

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts, src/application/lane/other-instances.ts
  it("declares no node dead whose lock was not seen since a reconnection", () => {
    expect(mayJudge(own(), sighted(look("gone", 0)), 1_000_000)).toBe(false);
  });

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts
  it("may declare a node dead whose lock was never seen if the checking node has just started", () => {
    const gone = sighted(look("gone", 0));
    expect(mayJudge(own({ isFirst: true, serverUpMs: 10_001 }), gone, 0)).toBe(true);
    expect(mayJudge(own({ isFirst: true, serverUpMs: 9_000 }), gone, 1_000)).toBe(false);
    expect(mayJudge(own({ isFirst: true, serverUpMs: 9_000 }), gone, 1_001)).toBe(true);
  });
});
