import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import { chooseMember, type MemberFacts, poolKeyOf, stickyMember } from "../../../src/domain/nonces/pool.ts";

const signer = (n: number): Address => `0x${n.toString(16).padStart(40, "0")}`;
const USUAL: Omit<MemberFacts, "signer"> = {
  ...{ passage: "open", ahead: 0, headAgeMs: 0, isFull: false, balance: null, lastChosen: 0 },
};
const member = (n: number, facts: Partial<MemberFacts> = {}): MemberFacts => ({
  ...USUAL,
  signer: signer(n),
  ...facts,
});
const chosen = (...members: readonly MemberFacts[]) => {
  const choice = chooseMember(members, 100n);
  return choice.kind === "chosen" ? Number(choice.signer) : choice.why;
};

const anyMember = fc.record({
  passage: fc.constantFrom("open", "blocked", "stopped", "outOfReach"),
  ahead: fc.nat(5),
  headAgeMs: fc.nat(3),
  isFull: fc.boolean(),
  balance: fc.option(fc.bigInt(0n, 200n), { nil: null }),
  lastChosen: fc.nat(9),
} satisfies { [Key in keyof Omit<MemberFacts, "signer">]: fc.Arbitrary<MemberFacts[Key]> });
const anyPool = fc
  .array(anyMember, { minLength: 1, maxLength: 6 })
  .map((all) => all.map((facts, n) => member(n + 1, facts)));

describe("the signer chosen from a pool", () => {
  it.each<[string, readonly MemberFacts[], number | string]>([
    ["has the shortest queue", [member(1, { ahead: 2 }), member(2, { ahead: 1 })], 2],
    ["among equals, has the younger head", [member(1, { ahead: 1, headAgeMs: 9 }), member(2, { ahead: 1 })], 2],
    ["among equals, was chosen longest ago", [member(1, { lastChosen: 7 }), member(2, { lastChosen: 6 })], 2],
    ["can send, however long its queue is", [member(1, { passage: "blocked" }), member(2, { ahead: 99 })], 2],
    ["is blocked rather than stopped", [member(1, { passage: "stopped" }), member(2, { passage: "blocked" })], 2],
    [
      "is stopped if the others are out of reach",
      [member(1, { passage: "stopped" }), member(2, { passage: "outOfReach" })],
      1,
    ],
    ["can pay", [member(1, { balance: 99n }), member(2, { balance: 100n, ahead: 50 })], 2],
    ["may be one whose balance is not known", [member(1, { balance: 99n }), member(2)], 2],
    ["has space in its queue", [member(1, { isFull: true }), member(2, { passage: "stopped" })], 2],
    ["is none if those that can pay are full", [member(1, { isFull: true }), member(2, { balance: 1n })], "full"],
    ["is none if none can pay", [member(1, { balance: 1n, isFull: true }), member(2, { balance: 99n })], "funds"],
  ])("follows the rule that it %s", (_, members, expected) => {
    expect(chosen(...members)).toBe(expected);
  });

  it("has the shortest queue among those with space in the queue and enough balance", () => {
    fc.assert(
      fc.property(anyPool, (members) => {
        const fit = members.filter(({ isFull, balance }) => !isFull && (balance === null || balance >= 100n));
        const choice = chooseMember(members, 100n);
        if (choice.kind === "refused") return fit.length === 0;
        const best = fit.find((each) => each.signer === choice.signer);
        const isBetter = ({ passage, ahead }: MemberFacts) => passage === best?.passage && ahead < best.ahead;
        return best !== undefined && !fit.some(isBetter);
      }),
    );
  });

  it("does not depend on the order of the configuration, unless all else is equal", () => {
    fc.assert(
      fc.property(anyPool, (members) => {
        const apart = members.map((each, n) => ({ ...each, lastChosen: n }));
        return JSON.stringify(chooseMember(apart, 100n)) === JSON.stringify(chooseMember([...apart].reverse(), 100n));
      }),
    );
  });
});

describe("a sticky key of a signer pool", () => {
  const members = Array.from({ length: 10 }, (_, n) => signer(n + 1));
  const keys = Array.from({ length: 1_000 }, (_, n) => `customer-${n}`);

  it("maps to the same signer for any order of signers", () => {
    const counts = new Map<Address | null, number>();
    for (const key of keys) {
      const kept = stickyMember(members, key);
      expect(stickyMember([...members].reverse(), key)).toBe(kept);
      counts.set(kept, (counts.get(kept) ?? 0) + 1);
    }
    expect(counts.size).toBe(10);
    for (const count of counts.values()) expect(count).toBeGreaterThan(50);
  });

  // protects [Pools] src/domain/nonces/pool.ts
  it("keeps its signer when another signer leaves the pool", () => {
    const [gone, ...left] = members as [Address, ...Address[]];
    for (const key of keys) {
      const kept = stickyMember(members, key);
      if (kept !== gone) expect(stickyMember(left, key)).toBe(kept);
      const joined = stickyMember([...members, signer(99)], key);
      expect([kept, signer(99)]).toContain(joined);
    }
    expect(stickyMember([], "key")).toBeNull();
  });

  it("maps to the same signer in every version", () => {
    expect(["customer-0", "customer-1", "customer-2"].map((key) => stickyMember(members, key))).toEqual([
      signer(2),
      signer(3),
      signer(7),
    ]);
  });
});

describe("the idempotency key of a pool request", () => {
  it("is null without a pool or a request id", () => {
    expect(poolKeyOf({ requestId: "a" })).toBeNull();
    expect(poolKeyOf({ pool: "p", requestId: null })).toBeNull();
    expect(poolKeyOf({ pool: "a", requestId: "b\nc" })).not.toBe(poolKeyOf({ pool: "a.b", requestId: "c" }));
  });
});
