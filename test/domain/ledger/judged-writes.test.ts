/** Effects and charges of single writes that the random sequences of the property tests do not reach. */
import { describe, expect, it } from "vitest";
import { apply, type Ledger, type LedgerWrite, mayGiveUp, mayMove, Part } from "../../../src/domain/ledger/index.ts";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import { AT, anAttempt, anIntent, type IntentWishes, step } from "../../support/lane-samples.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import { newLedger, unusedGuard } from "../../support/whole-ledger.ts";
import { FENCE, LANE } from "./story.ts";

const NOW = new Date(Date.UTC(2026, 10, 17));
const LATER = new Date(NOW.getTime() + 60_000);

const empty = (policies?: Policies): Ledger =>
  policies === undefined ? newLedger(LANE) : { ...newLedger(LANE), guard: unusedGuard(policies) };

function written(ledger: Ledger, write: object, at = NOW) {
  const done = apply(ledger, { fence: FENCE, ...write } as LedgerWrite, at);
  return { ...done, outcome: done.outcome as unknown as Readonly<Record<string, unknown>> };
}

function created(ledger: Ledger, wishes: IntentWishes & { readonly exactNonce?: number } = {}) {
  const { exactNonce, ...rest } = wishes;
  const intent = { ...anIntent(LANE, rest), ...(exactNonce === undefined ? {} : { exactNonce }) };
  const done = written(ledger, { kind: "allocate", floor: 0, items: [{ intent }] });
  return { ledger: done.ledger, txId: intent.txId, result: (done.outcome.items as readonly object[])[0] };
}

describe("a transaction that ends without being signed", () => {
  it.each([
    ["giveUp", "REJECTED"],
    ["expire", "EXPIRED"],
    // protects [Replicas that embed the library] src/domain/ledger/guard.ts
  ] as const)("gets its whole policy charge refunded at the event %s", (event, subState) => {
    const start = empty(forSigner(LANE.signer, { maxCost: { perHour: "100" } }));
    const wishes = { payload: { value: 0n }, gasCost: 60n };
    const first = created(start, { ...wishes, validUntil: LATER });
    expect(first.result).toMatchObject({ result: "created" });
    expect(created(first.ledger, wishes).result).toMatchObject({ result: "forbidden" });
    const items = [step(first.txId, AT.allocated, event, { subState })];
    const gone = written(first.ledger, { kind: "transition", items }, LATER);
    expect(gone.outcome.items).toEqual(["applied"]);
    expect(created(gone.ledger, wishes).result).toMatchObject({ result: "created" });
  });
});

describe("a request id whose transaction retention deleted", () => {
  const start = empty();
  const spent = { ...start, requests: start.requests.set("old", { spent: true }) };

  it("gets no second nonce and no reservation", () => {
    expect(created(spent, { requestId: "old" }).result).toEqual({ result: "spent" });
    const reserve = { kind: "reserve", floor: 0, reservationId: "r", requestId: "old", owner: null, ttlMs: 1, most: 9 };
    expect(written(spent, reserve).outcome.result).toEqual({ result: "spent" });
  });

  it("signs no message", () => {
    const signed = { ...start, messages: start.messages.set("old", { spent: true }) };
    expect(written(signed, { kind: "signMessage", asked: { requestId: "old" } }).outcome).toMatchObject({
      result: "spent",
    });
  });
});

describe("a mined replacement with a lower value than the original", () => {
  // protects [Replicas that embed the library] src/domain/ledger/guard.ts
  it("is counted with its own value against policy limits", () => {
    const start = empty(forSigner(LANE.signer, { maxValue: { perHour: "100" } }));
    const fees = { type: "legacy", gasPrice: 0n } as const;
    const first = created(start, { payload: { value: 80n } });
    const spends = { to: null, data: "0x", value: 10n, gasCost: 0n, about: "payload" } as const;
    const steps = [
      step(first.txId, AT.allocated, "sign", { attempt: anAttempt(1, { fees }) }),
      step(first.txId, AT.pending, "replace", { attempt: anAttempt(2, { kind: "replace", fees }), spends }),
      step(first.txId, AT.pending, "mine"),
      step(first.txId, AT.mined, "confirm", { paid: { ordinal: 2, gasCost: 0n, succeeded: true } }),
    ];
    const ledger = steps.reduce((before, item) => {
      const done = written(before, { kind: "transition", items: [item] });
      expect(done.outcome.items, item.event).toEqual(["applied"]);
      return done.ledger;
    }, first.ledger);
    expect(created(ledger, { payload: { value: 90n } }).result).toMatchObject({ result: "created" });
    expect(created(ledger, { payload: { value: 91n } }).result).toMatchObject({ result: "forbidden" });
  });
});

describe("a transaction that requires approval", () => {
  const policies = forSigner(LANE.signer, { requireApproval: { aboveValue: "5" } });

  it("is refused if the request names an exact nonce", () => {
    expect(created(empty(policies), { payload: { value: 6n } }).result).toMatchObject({ result: "awaiting" });
    const named = created(empty(policies), { payload: { value: 6n }, exactNonce: 0 });
    expect(named.result).toMatchObject({ result: "forbidden", rule: "signer.requireApproval" });
    const next = created(named.ledger, { payload: { value: 5n }, exactNonce: 0 });
    expect(next.result).toEqual({ result: "created", nonce: 0, createdAt: NOW });
  });
});

describe("a caller's signed payload for an exact nonce", () => {
  const reserve = { kind: "reserve", floor: 0, reservationId: "kept", requestId: null, ttlMs: 60_000, most: 16 };
  const reserved = written(empty(), { ...reserve, owner: "shop" }).ledger;
  const bind = (owner: string | null, nonce: number) => {
    const intent = anIntent(LANE, { owner });
    return written(reserved, { kind: "bind", nonce, intent, attempt: anAttempt(), reason: "r", chosen: { floor: 0 } });
  };

  // protects [Replicas that embed the library] src/domain/ledger/bind.ts
  it("can use a reserved nonce only if the same API key reserved it", () => {
    expect(bind("thief", 0).outcome).toMatchObject({ result: "conflict", next: 1 });
    expect(bind(null, 0).outcome).toMatchObject({ result: "conflict" });
    const own = bind("shop", 0);
    expect(own.outcome).toMatchObject({ result: "settled" });
    expect(own.ledger.reservations.get("kept")).toMatchObject({ state: "SUBMITTED" });
  });

  it("must otherwise use the next free nonce, none above and none below", () => {
    expect(bind("thief", 1).outcome).toMatchObject({ result: "settled" });
    expect(bind("thief", 2).outcome).toMatchObject({ result: "conflict", next: 1 });
  });
});

describe("a transaction that is placed directly at a nonce", () => {
  const keyed = policiesOf({ keys: { shop: { maxCost: { perHour: "100" }, to: [`0x${"c".repeat(40)}`] } } });
  const reserve = { kind: "reserve", floor: 0, reservationId: "kept", requestId: null, ttlMs: 0, most: 16 };
  const expired = [reserve, { kind: "expire" }].reduce(
    (ledger, write) => written(ledger, { ...write, owner: "shop" }).ledger,
    empty(keyed),
  );
  const bind = (kind: "placeholder" | "initial" | "external", gasCost: bigint) => {
    const intent = anIntent(LANE, { owner: "shop", payload: { value: 0n }, gasCost });
    const reservation = { reservationId: "kept", becomes: "EXPIRED" };
    const attempt = anAttempt(1, { kind, fees: { type: "legacy", gasPrice: 0n } });
    return written(expired, { kind: "bind", nonce: 0, intent, attempt, reason: "r", reservation });
  };

  it("must meet all policy rules if its payload is known", () => {
    expect(bind("initial", 1n).outcome).toMatchObject({ result: "forbidden", forbidden: { rule: "key.to" } });
    expect(bind("external", 1n).outcome).toMatchObject({ result: "settled" });
    expect(bind("external", 101n).outcome).toMatchObject({
      result: "forbidden",
      forbidden: { rule: "key.maxCost.perHour" },
    });
  });

  it("cannot wait for the approval that its payload needs", () => {
    const policies = policiesOf({ keys: { shop: { requireApproval: { aboveCost: "5" } } } });
    const start = written(empty(policies), { ...reserve, owner: "shop", ttlMs: 9 }).ledger;
    const bound = (gasCost: bigint) => {
      const intent = anIntent(LANE, { owner: "shop", payload: { value: 0n }, gasCost });
      const reservation = { reservationId: "kept", becomes: "SUBMITTED" };
      return written(start, { kind: "bind", nonce: 0, intent, attempt: anAttempt(), reason: "r", reservation }).outcome;
    };
    expect(bound(6n)).toMatchObject({ result: "forbidden", forbidden: { rule: "key.requireApproval" } });
    expect(bound(5n)).toMatchObject({ result: "settled" });
  });

  it("is charged to its API key beyond the key's limits if it is a placeholder", () => {
    const { changes, outcome } = bind("placeholder", 101n);
    expect(outcome).toMatchObject({ result: "settled" });
    const charged = changes.filter(({ kind }) => kind === "charged");
    expect(charged).toMatchObject([{ owner: "shop", pastKeyLimits: true, charge: { cost: 101n } }]);
    expect(bind("external", 1n).changes.filter((change) => "pastKeyLimits" in change)).toEqual([]);
  });
});

describe("a write that does not belong to what it names", () => {
  it("is refused for a lane of another signer", () => {
    const lane = { ...LANE, signer: `0x${"9".repeat(40)}` } as const;
    const write = { kind: "expire", fence: { ...FENCE, lane } } as const;
    expect(() => apply(empty(), write, NOW)).toThrow("another lane");
  });

  it("is refused for an intake row of another transaction", () => {
    const start = empty();
    const [intent, other] = [anIntent(LANE), anIntent(LANE)];
    const { txId, requestId, owner, fingerprint } = other;
    const row = {
      intakeId: 1,
      txId,
      requestId,
      owner,
      fingerprint,
      acceptedAt: NOW,
      approval: null,
      unanswered: false,
    };
    const ledger = { ...start, intake: start.intake.set(1, row) };
    const take = (of: typeof intent) =>
      written(ledger, { kind: "allocate", floor: 0, items: [{ intent: of, intakeId: 1 }] }, LATER);
    expect(() => take(intent)).toThrow("not of transaction");
    expect(take(other).outcome.items).toMatchObject([{ result: "created", nonce: 0, createdAt: NOW }]);
    const policies = forSigner(LANE.signer, { requireApproval: { aboveCost: "0" } });
    const awaiting = { ...ledger, guard: unusedGuard(policies) };
    const items = [{ intent: other, intakeId: 1 }];
    expect(written(awaiting, { kind: "allocate", floor: 0, items }, LATER).outcome.items).toEqual([
      { result: "awaiting", rule: "signer.requireApproval", createdAt: NOW },
    ]);
  });
});

describe("a step of a transaction", () => {
  const first = created(empty());
  const stepped = (item: object) => () => written(first.ledger, { kind: "transition", items: [item] });

  it("is refused if it leads to another state than its own", () => {
    const sign = step(first.txId, AT.allocated, "sign", { attempt: anAttempt() });
    expect(stepped({ ...sign, subState: "MINED" })).toThrow("is not legal");
    expect(stepped({ ...sign, to: "CONFIRMED", subState: null })).toThrow("is not legal");
    expect(stepped({ ...sign, to: "STUCK" })).toThrow("is not legal");
    expect(stepped({ ...step(first.txId, AT.allocated, "hold"), to: "STUCK" })).toThrow("is not legal");
    expect(stepped(sign)().outcome.items).toEqual(["applied"]);
  });

  it("is refused if it would track a transaction without an attempt", () => {
    expect(stepped(step(first.txId, AT.allocated, "sign"))).toThrow("was never signed");
  });
});

describe("the indexes of a ledger", () => {
  const first = created(empty(), { requestId: "order" });
  const signed = step(first.txId, AT.allocated, "sign", { attempt: anAttempt(), claim: { ordinal: 1 } });
  const pending = written(first.ledger, { kind: "transition", items: [signed] }).ledger;
  const broadcast = { kind: "transition", items: [step(first.txId, AT.pending, "broadcast")] };

  it("are not copied by a step that changes neither state nor nonce", () => {
    const { ledger } = written(pending, broadcast);
    expect(ledger.transactions.get(first.txId)?.subState).toBe("BROADCAST");
    for (const name of ["nonces", "live", "fixed", "watched", "requests"] as const) {
      expect(ledger[name], name).toBe(pending[name]);
    }
  });

  it("are not kept where they were not loaded", () => {
    const fixed = Part.of<number, string>("transaction that may not move at nonce", { kind: "named" });
    const { ledger } = written({ ...first.ledger, fixed }, { kind: "transition", items: [signed] });
    expect(ledger.fixed).toBe(fixed);
  });
});

describe("a transaction that may leave its nonce", () => {
  const holder = { state: "ALLOCATED", attemptCount: 0, nonce: 5, pinned: false } as const;

  it.each([
    ["a free one", {}, 5, true],
    ["one that was signed", { state: "TRACKING" }, 5, false],
    ["one with an attempt", { attemptCount: 1 }, 5, false],
    ["one from before a loss of commits", {}, 6, false],
    ["one whose caller chose the nonce", { pinned: true }, 5, false],
    ["one without a nonce", { nonce: null }, 0, false],
  ] as const)("was never signed and was not placed by its caller: %s", (_, differs, epochFloor, may) => {
    expect(mayMove({ ...holder, ...differs }, epochFloor)).toBe(may);
  });

  it("gives it up only if everything above may move down", () => {
    const start = empty();
    const at = (nonce: number) => ({ ...holder, nonce });
    const above = { ...start, fixed: start.fixed.set(6, "signed"), reserved: start.reserved.set(8, "kept") };
    expect([4, 5, 6, 7, 8].map((nonce) => mayGiveUp(above, at(nonce)))).toEqual([false, false, false, false, true]);
    const signed = { ...start, fixed: start.fixed.set(6, "signed") };
    expect([5, 6].map((nonce) => mayGiveUp(signed, at(nonce)))).toEqual([false, true]);
    expect(mayGiveUp(start, { ...at(5), pinned: true }), "its caller may end it").toBe(true);
    expect(mayGiveUp(start, { ...at(5), attemptCount: 1 })).toBe(false);
    expect(mayGiveUp(start, { ...holder, nonce: null })).toBe(false);
  });
});

describe("a lane whose database may lack what was sent", () => {
  const first = created(empty(), { validUntil: LATER });
  const attempt = anAttempt();
  const outcomeOf = (item: object, of: object = { reconciled: false }) =>
    written({ ...first.ledger, ...of }, { kind: "transition", items: [item] }, LATER).outcome.items;

  it("sends nothing and lets nothing expire", () => {
    const sign = step(first.txId, AT.allocated, "sign", { attempt });
    const expire = step(first.txId, AT.allocated, "expire", { subState: "EXPIRED" });
    for (const held of [{ reconciled: false }, { suspendedBy: "HISTORY" }]) {
      expect(outcomeOf({ ...sign, claim: { ordinal: 1 } }, held)).toEqual(["conflict"]);
      expect(outcomeOf(expire, held)).toEqual(["conflict"]);
      expect(outcomeOf(sign, held), "a hash that its caller sent").toEqual(["applied"]);
    }
    expect(outcomeOf({ ...sign, claim: { ordinal: 1 } }, { suspendedBy: "OPERATOR" })).toEqual(["applied"]);
    expect(outcomeOf(expire, {})).toEqual(["applied"]);
  });
});

describe("a step that repeats the last one", () => {
  const first = created(empty());
  const signed = step(first.txId, AT.allocated, "sign", { attempt: anAttempt() });
  const resubmit = step(first.txId, AT.pending, "resubmit");
  const before = written(first.ledger, { kind: "transition", items: [signed, resubmit] }).ledger;
  const kept = (item: object) =>
    written(before, { kind: "transition", items: [item] }).changes.flatMap((change) =>
      change.kind === "moved" ? [change.step, change.repeats] : [],
    );

  it.each([
    ["the same event", resubmit, [3, true]],
    ["an operator's decision", { ...resubmit, decision: { actor: "operator:me", audit: null } }, [4, false]],
    ["a private payload made public", { ...resubmit, disclosed: true }, [4, false]],
    ["another event", step(first.txId, AT.pending, "submitFailed"), [4, false]],
    ["another payload", { ...resubmit, attempt: anAttempt(2, { kind: "external" }) }, [4, false]],
  ] as const)("has a history row of its own unless nothing else happens: %s", (_, item, expected) => {
    expect(kept(item)).toEqual(expected);
  });
});

describe("the hash of an attempt that a node signed", () => {
  const first = created(empty());
  const hash = anAttempt().txHash;
  const sign = (txHash: string | null, nodeSigned = true) => {
    const attempt = { ...anAttempt(1), txHash, rawTransaction: null, ...(nodeSigned ? { nodeSigned } : {}) };
    return step(first.txId, AT.allocated, "sign", { attempt: attempt as never });
  };
  const identify = (ordinal: number, txHash: string) =>
    step(first.txId, AT.pending, "broadcast", { identified: { ordinal, txHash: txHash as typeof hash } });
  const ledgerAfter = (...items: readonly object[]) => written(first.ledger, { kind: "transition", items }).ledger;
  const hashesIn = (ledger: Ledger) => ledger.transactions.get(first.txId)?.attempts?.map(({ txHash }) => txHash);

  it("is stored once, for an attempt that exists", () => {
    expect(hashesIn(ledgerAfter(sign(null), identify(1, hash)))).toEqual([hash]);
    expect(hashesIn(ledgerAfter(sign(hash), identify(1, hash)))).toEqual([hash]);
    expect(() => ledgerAfter(sign(anAttempt().txHash), identify(1, hash))).toThrow("another hash");
    expect(() => ledgerAfter(sign(hash, false), identify(1, hash))).toThrow("not signed by the RPC node");
    for (const ordinal of [0, 2]) expect(() => ledgerAfter(sign(null), identify(ordinal, hash))).toThrow("no attempt");
    const [other, second] = [
      anAttempt().txHash,
      { ...anAttempt(2), txHash: null, rawTransaction: null, kind: "external", nodeSigned: true },
    ];
    const again = step(first.txId, AT.pending, "cancel", { attempt: second as never });
    expect(hashesIn(ledgerAfter(sign(other), again, identify(2, hash)))).toEqual([other, hash]);
    expect(() => ledgerAfter(sign(other), again, identify(1, hash))).toThrow("another hash");
  });
});

describe("a transaction on hold", () => {
  const first = created(empty(), { validUntil: LATER });
  const signed = step(first.txId, AT.allocated, "sign", { attempt: anAttempt() });
  const hold = step(first.txId, AT.pending, "hold");
  const resubmit = step(first.txId, AT.pending, "resubmit", { claim: { ordinal: 1 } });
  const decision = { actor: "operator:me", audit: null };
  const { ledger } = written(first.ledger, { kind: "transition", items: [signed, hold] });

  it.each([
    ["without a request", resubmit, "conflict"],
    ["by an operator's decision", { ...resubmit, decision }, "applied"],
    ["if an operator requested this send", { ...resubmit, sendRequested: true }, "applied"],
    ["if nothing is sent", step(first.txId, AT.pending, "resubmit"), "applied"],
    ["if it was released", resubmit, "applied", step(first.txId, AT.pending, "unhold")],
    ["past its time", step(first.txId, AT.pending, "cancel", { attempt: anAttempt(2), expires: true }), "conflict"],
  ] as const)("is sent only for an operator: %s", (_, item, result, before?: object) => {
    const items = before === undefined ? [item] : [before, item];
    expect(written(ledger, { kind: "transition", items }, LATER).outcome.items).toHaveProperty(
      `${items.length - 1}`,
      result,
    );
  });
});

it("a transaction with an attempt gives its nonce up in no state", () => {
  const first = created(empty(), { validUntil: LATER });
  const external = { ...anAttempt(1, { kind: "external" }), rawTransaction: null };
  const decide = step(first.txId, AT.allocated, "decide", { attempt: external });
  const { ledger } = written(first.ledger, { kind: "transition", items: [decide] });
  const left = (event: "giveUp" | "expire") => () =>
    written(ledger, { kind: "transition", items: [step(first.txId, AT.allocated, event)] }, LATER).outcome.items;
  expect(left("giveUp")).toThrow("cannot leave nonce 0");
  expect(left("expire")).toThrow("cannot leave nonce 0");
});
