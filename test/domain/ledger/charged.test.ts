/** Amounts that steps of a transaction charge to limits, where the random sequences do not lead. */
import { describe, expect, it } from "vitest";
import { apply, type Ledger, type LedgerWrite } from "../../../src/domain/ledger/index.ts";
import { AT, anAttempt, anIntent, step } from "../../support/lane-samples.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import { newLedger, unusedGuard } from "../../support/whole-ledger.ts";
import { FENCE, LANE } from "./story.ts";

const NOW = new Date(Date.UTC(2026, 10, 17, 12));
const HOUR_MS = NOW.getTime();
const limited = forSigner(LANE.signer, { maxCost: { perHour: "1000" } });
const fees = { type: "legacy", gasPrice: 1n } as const;

const done = (ledger: Ledger, write: object) => apply(ledger, { fence: FENCE, ...write } as LedgerWrite, NOW);
const stepped = (ledger: Ledger, item: object) => {
  const { ledger: after, outcome, changes } = done(ledger, { kind: "transition", items: [item] });
  const charges = changes.flatMap((change) => (change.kind === "charged" ? [change.charge] : []));
  return { after, result: "items" in outcome ? outcome.items[0] : null, charges };
};

/** A transaction that costs 60, and the ledger in which it got its nonce. */
function createdIn(start: Ledger, owner: string | null = null) {
  const intent = anIntent(LANE, { owner, payload: { value: 0n }, gasCost: 60n });
  const { ledger } = done(start, { kind: "allocate", floor: 0, items: [{ intent }] });
  const sign = (gas: bigint, overrides: object = {}) =>
    step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(1, { fees, gas, ...overrides }) });
  const at = (from: Parameters<typeof step>[1], event: Parameters<typeof step>[2], extras: object = {}) =>
    step(intent.txId, from, event, extras);
  return { ledger, sign, at, txId: intent.txId };
}

const guarded: Ledger = { ...newLedger(LANE), guard: unusedGuard(limited) };

describe("a transaction that got its nonce before there was a policy", () => {
  const { ledger, sign, at } = createdIn(newLedger(LANE));
  const later = { ...ledger, guard: unusedGuard(limited) };

  it("is signed without a check, and charged once a step declares what it spends", () => {
    const signed = stepped(later, sign(9_999n));
    expect(signed).toMatchObject({ result: "applied", charges: [] });
    const spends = { to: null, data: "0x", value: 0n, gasCost: 70n, about: "cost" } as const;
    const attempt = anAttempt(2, { fees });
    expect(stepped(signed.after, at(AT.pending, "reprice", { attempt, spends })).charges).toMatchObject([
      { cost: 70n, ordinal: 2, settles: false },
    ]);
  });
});

describe("a transaction under a limit", () => {
  const { ledger, sign, at, txId } = createdIn(guarded);
  const signed = stepped(ledger, sign(60n));

  it("is charged again only for what its first attempt costs more", () => {
    expect(signed).toMatchObject({ result: "applied", charges: [] });
    expect(stepped(ledger, sign(59n)).charges).toEqual([]);
    expect(stepped(ledger, sign(61n)).charges).toMatchObject([{ cost: 1n, ordinal: 1, hourMs: HOUR_MS }]);
    expect(stepped(ledger, sign(1_001n))).toMatchObject({ result: "forbidden", charges: [] });
  });

  it("is charged for another value at the same cost", () => {
    const spends = { to: null, data: "0x", value: 20n, gasCost: 40n, about: "cost" } as const;
    const attempt = anAttempt(2, { kind: "replace", fees });
    expect(stepped(signed.after, at(AT.pending, "replace", { attempt, spends })).charges).toMatchObject([
      { value: 20n, cost: 0n, moves: 20n, ordinal: 2 },
    ]);
  });

  it("is charged at once for a payload that will be signed later", () => {
    const spends = { to: null, data: "0x", value: 0n, gasCost: 75n, about: "payload" } as const;
    expect(stepped(ledger, at(AT.allocated, "amend", { spends })).charges).toMatchObject([{ cost: 15n, ordinal: 1 }]);
    expect(stepped({ ...ledger, guard: null }, at(AT.allocated, "amend", { spends }))).toMatchObject({
      ...{ result: "applied", charges: [] },
    });
  });

  it("is charged nothing for an attempt that another program signed", () => {
    for (const other of [{ kind: "external" }, { foreign: true }]) {
      expect(stepped(ledger, sign(9_999n, other))).toMatchObject({ result: "applied", charges: [] });
    }
  });

  it("must declare what a further attempt spends", () => {
    const attempt = anAttempt(2, { fees });
    expect(() => stepped(signed.after, at(AT.pending, "reprice", { attempt }))).toThrow("does not declare");
  });

  it("stays charged with its worst case if nobody knows what was paid", () => {
    const mined = stepped(signed.after, at(AT.pending, "mine")).after;
    expect(stepped(mined, at(AT.mined, "confirm")).charges).toEqual([]);
    const paid = { ordinal: 1, gasCost: 25n, succeeded: true };
    const settled = stepped(mined, at(AT.mined, "confirm", { paid }));
    expect(settled.charges).toMatchObject([{ cost: -35n, settles: true }]);
    expect(stepped(settled.after, at(AT.confirmed, "reorg")).charges).toMatchObject([{ cost: 35n, settles: true }]);
    expect(settled.after.guard?.use?.hour.cost).toBe(25n);
    expect(settled.after.guard?.charges.get(txId)).toHaveLength(2);
  });

  it("is not charged by steps that spend nothing", () => {
    expect(stepped(signed.after, at(AT.pending, "broadcast")).charges).toEqual([]);
    const unread = { ...unusedGuard(limited), charges: ledger.guard?.charges.unsure() } as Ledger["guard"];
    expect(stepped({ ...signed.after, guard: unread }, at(AT.pending, "broadcast")).result).toBe("applied");
  });
});

describe("a charge", () => {
  const keyed = policiesOf({ keys: { shop: { maxCost: { perHour: "100" } } } });
  const both = policiesOf({
    ...{ keys: { shop: { maxCost: { perHour: "100" } } } },
    ...{ signers: { [LANE.signer]: { maxCost: { perHour: "100" } } } },
  });
  const usesAfter = (policies: typeof keyed, owner: string | null) => {
    const { ledger } = createdIn({ ...newLedger(LANE), guard: unusedGuard(policies) }, owner);
    const { use, keyUse } = ledger.guard as NonNullable<Ledger["guard"]>;
    return [use?.hour.cost, keyUse.get("shop")?.hour.cost ?? 0n];
  };

  it("counts for the signer and the API key that have a policy", () => {
    expect(usesAfter(keyed, "shop")).toEqual([0n, 60n]);
    expect(usesAfter(both, "shop")).toEqual([60n, 60n]);
    expect(usesAfter(both, "other")).toEqual([60n, 0n]);
    expect(usesAfter(both, null)).toEqual([60n, 0n]);
    expect(usesAfter(keyed, "other")).toEqual([0n, 0n]);
    expect(usesAfter(limited, "shop")).toEqual([60n, 0n]);
  });

  it("counts in the latest hour that its signer or its key has counted in", () => {
    const later = HOUR_MS + 3_600_000;
    const guard = unusedGuard(both);
    const late = { hourMs: later, hour: { value: 0n, cost: 0n }, day: { value: 0n, cost: 0n } };
    const start = { ...newLedger(LANE), guard: { ...guard, keyUse: guard.keyUse.set("shop", late) } };
    const { ledger, txId } = createdIn(start, "shop");
    expect(ledger.guard?.charges.get(txId)).toMatchObject([{ hourMs: later }]);
  });
});
