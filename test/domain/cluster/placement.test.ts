import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  alertingMember,
  type Member,
  place,
  rank,
  servedLanes,
  serves,
  whyUnowned,
} from "../../../src/domain/cluster/placement.ts";
import { type Address, type Lane, laneKey } from "../../../src/domain/lane.ts";

const signer = (n: number): Address => `0x${n.toString(16).padStart(40, "0")}`;
const SIGNERS = Array.from({ length: 100 }, (_, n) => signer(n));

function member(name: string, overrides: Partial<Member> = {}): Member {
  return {
    instanceId: `i-${name}`,
    nodeId: name,
    url: `http://${name}`,
    mode: "worker-queue",
    chains: new Set([1]),
    signers: new Set(SIGNERS),
    draining: false,
    standsBack: false,
    keysAway: new Set(),
    ...overrides,
  };
}

const members = fc
  .uniqueArray(
    fc.record({
      name: fc.string({ minLength: 1, maxLength: 8 }),
      chains: fc.subarray([1, 2, 3]),
      signers: fc.subarray(SIGNERS.slice(0, 8)),
      draining: fc.boolean(),
      embedded: fc.boolean(),
      standsBack: fc.boolean(),
    }),
    { maxLength: 6, selector: ({ name }) => name },
  )
  .map((list) =>
    list.map(({ name, chains, signers, draining, embedded, standsBack }) =>
      member(name, {
        chains: new Set(chains),
        signers: new Set(signers),
        draining,
        standsBack,
        ...(embedded ? { url: "" } : {}),
      }),
    ),
  );

function loads(lanes: readonly Lane[], among: readonly Member[]): readonly number[] {
  const placed = [...place(lanes, among).values()];
  return among.map((each) => placed.filter((owner) => owner === each).length);
}

describe("the placement of lanes", () => {
  // protects [Signers] src/domain/cluster/key-health.ts, src/application/cluster/keys-away.ts, src/domain/cluster/placement.ts
  it("prefers a node that can reach the lane's key", () => {
    const lane = { chainId: 1, signer: signer(3) };
    const away = { keysAway: new Set([lane.signer]) };
    const names = (list: readonly Member[]) => rank(lane, list).map(({ nodeId }) => nodeId);
    const [first, second] = names([member("a"), member("b")]) as [string, string];
    expect(names([member(first, away), member(second)])).toEqual([second]);
    expect(names([member(first, away), member(second, { url: "" })])).toEqual([second]);
    expect(names([member(first, away), member(second, away)])).toEqual([first, second]);
    expect(names([member(first, { keysAway: new Set([signer(4)]) }), member(second)])).toEqual([first, second]);
    // A node of an older release cannot read which keys other nodes cannot reach. So it would leave the lane to the
    // first node.
    expect(names([member(first, away), member(second, { keysAway: null })])).toEqual([first, second]);
  });

  it("gives a lane only to a node that serves the lane", () => {
    fc.assert(
      fc.property(members, (list) => {
        const lanes = servedLanes(list);
        const placed = place(lanes, list);
        for (const lane of lanes) {
          const owner = placed.get(laneKey(lane));
          const able = list.filter((each) => serves(each, lane));
          expect(owner === undefined).toBe(able.length === 0);
          if (owner !== undefined) expect(able).toContain(owner);
        }
      }),
    );
  });

  it("gives a lane to a node without a URL only if no other node serves it", () => {
    fc.assert(
      fc.property(members, (list) => {
        const lanes = servedLanes(list);
        const placed = place(lanes, list);
        for (const lane of lanes) {
          const able = list.filter((each) => serves(each, lane));
          const reachable = able.filter(({ url }) => url !== "");
          const allowed = reachable.length > 0 ? reachable : able;
          const owner = placed.get(laneKey(lane));
          if (owner !== undefined) expect(allowed).toContain(owner);
          expect([...rank(lane, list)].sort(byName)).toEqual([...allowed].sort(byName));
        }
      }),
    );
  });

  it("avoids a node that recently missed its lease if another node serves the lane", () => {
    fc.assert(
      fc.property(members, (list) => {
        for (const lane of servedLanes(list)) {
          const owner = place(servedLanes(list), list).get(laneKey(lane));
          const able = rank(lane, list);
          if (owner?.standsBack === true) expect(able.filter(({ standsBack }) => !standsBack)).toEqual([]);
          expect(able.map(({ standsBack }) => Number(standsBack))).toEqual(
            able.map(({ standsBack }) => Number(standsBack)).sort(),
          );
        }
      }),
    );
    const steady = [member("a"), member("b")];
    const lanes = servedLanes(steady);
    expect(loads(lanes, [...steady, member("c", { standsBack: true })])).toEqual([50, 50, 0]);
    const allBack = ["a", "b"].map((name) => member(name, { standsBack: true }));
    expect(loads(lanes, allBack), "where all of them do, none does").toEqual([50, 50]);
  });

  it("is the same on every node, for any order of the rows", () => {
    fc.assert(
      fc.property(members, fc.integer(), (list, seed) => {
        const shuffled = [...list].sort((a, b) => hash(a.nodeId, seed) - hash(b.nodeId, seed));
        const lanes = servedLanes(list);
        const again = place([...lanes].reverse(), shuffled);
        for (const [key, owner] of place(lanes, list)) expect(again.get(key)).toBe(owner);
      }),
    );
  });

  it("is even among nodes that serve the same lanes, embedded nodes excluded", () => {
    const lanes = servedLanes([member("a")]);
    const nodes = ["a", "b", "c"].map((name) => member(name));
    expect(Math.max(...loads(lanes, nodes))).toBe(34);
    const embedded = [member("x", { url: "" }), member("y", { url: "" })];
    expect(Math.max(...loads(lanes, [...nodes, ...embedded]))).toBe(34);
    expect(loads(lanes, embedded).every((load) => load === 50)).toBe(true);
  });

  it("is even if one node has all keys and another node only some keys", () => {
    const lanes = SIGNERS.map((each) => ({ chainId: 1, signer: each }));
    const some = (name: string, from: number, to: number) =>
      member(name, { signers: new Set(SIGNERS.slice(from, to)) });
    expect(loads(lanes, [member("a"), some("b", 50, 100)])).toEqual([50, 50]);
    expect(loads(lanes, [member("a"), some("b", 0, 50)])).toEqual([50, 50]);
    expect(loads(lanes, [member("a"), some("b", 90, 100)])).toEqual([90, 10]);
  });

  it("moves few other lanes when a node joins or leaves", () => {
    const lanes = servedLanes([member("a")]);
    const four = ["a", "b", "c", "d"].map((name) => member(name));
    const before = place(lanes, four.slice(0, 3));
    const after = place(lanes, four);
    const moved = lanes.filter((lane) => before.get(laneKey(lane)) !== after.get(laneKey(lane)));
    expect(moved.length).toBeGreaterThanOrEqual(25);
    expect(moved.length).toBeLessThanOrEqual(50);
  });

  it("does not change if a node restarts", () => {
    const lanes = servedLanes([member("a")]);
    const before = place(lanes, [member("a"), member("b")]);
    const after = place(lanes, [member("a"), member("b", { instanceId: "another life" })]);
    for (const [key, owner] of before) expect(after.get(key)?.nodeId).toBe(owner.nodeId);
  });
});

function byName(a: Member, b: Member): number {
  return a.nodeId < b.nodeId ? -1 : 1;
}

function hash(text: string, seed: number): number {
  return [...text].reduce((sum, letter) => (Math.imul(sum, 31) + (letter.codePointAt(0) ?? 0)) | 0, seed);
}

describe("the reason why no node owns a lane", () => {
  const lane: Lane = { chainId: 1, signer: signer(1) };
  const without = member("without", { signers: new Set() });
  const draining = member("draining", { draining: true });
  const astray = member("astray", { chains: new Set([2]) });

  it.each([
    ["no node is alive", [], "no live node holds its key"],
    ["no node holds the key", [without], "no live node holds its key"],
    ["all holders shut down", [without, draining], "every node that holds its key is shutting down (draining)"],
    ["no holder has the chain", [without, astray], "no node that holds its key reaches chain 1 (astray)"],
    ["the holder with the chain shuts down", [draining, astray], "no node that holds its key reaches chain 1 (astray)"],
    ["a node could own it", [without, member("able")], "a node could own it and has not taken it (able)"],
    [
      "many could",
      ["d", "c", "b", "a"].map((name) => member(name)),
      "a node could own it and has not taken it (a, b, c and 1 more)",
    ],
  ])("is named if %s", (_, list, reason) => {
    expect(whyUnowned(lane, list)).toBe(reason);
  });
});

describe("the member that raises alerts about the cluster", () => {
  const embedded = member("embedded", { url: "" });
  const draining = member("draining", { draining: true });
  const nameOf = (...list: readonly Member[]) => alertingMember(list)?.nodeId ?? null;

  it("is the first that stays and can be reached", () => {
    expect(nameOf(embedded, draining, member("a"), member("b"))).toBe("a");
    expect(nameOf(draining, embedded)).toBe("embedded");
    expect(nameOf(draining)).toBe("draining");
    expect(nameOf()).toBeNull();
  });
});
