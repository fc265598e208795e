/** Intents without a nonce: what each decision about them leaves in the ledger. */
import { describe, expect, it } from "vitest";
import { apply, type Ledger, type LedgerWrite, type WaitingIntent } from "../../../src/domain/ledger/index.ts";
import { anIntent } from "../../support/lane-samples.ts";
import { asked, permitOf, permitRule } from "../../support/message-samples.ts";
import { forSigner } from "../../support/policies.ts";
import { fold, newLedger, unusedGuard } from "../../support/whole-ledger.ts";
import { FENCE, LANE } from "./story.ts";

const ACCEPTED = new Date(1_000);
const NOW = new Date(2_000);
const intent = anIntent(LANE, { requestId: "order" });
const { txId, requestId, owner, fingerprint } = intent;
const ROW: WaitingIntent = {
  ...{ intakeId: 7, txId, requestId, owner, fingerprint, acceptedAt: ACCEPTED },
  ...{ approval: null, unanswered: true },
};
const approving = forSigner(LANE.signer, { requireApproval: { aboveCost: "0", expiresAfter: "1s" } });
const lane = newLedger(LANE);

const OTHER: WaitingIntent = { ...ROW, intakeId: 8, txId: "other", requestId: null };
const withRow = (row: WaitingIntent | null, start: Ledger = lane) =>
  row === null ? start : { ...start, intake: start.intake.set(8, OTHER).set(7, row).set(9, OTHER) };
const written = (ledger: Ledger, write: object, at = NOW) =>
  apply(ledger, { fence: FENCE, ...write } as LedgerWrite, at);
const allocate = { kind: "allocate", floor: 0, items: [{ intent, intakeId: 7 }] };
const settle = (result: object) => ({ kind: "settleIntake", results: [{ intakeId: 7, requestId, ...result }] });
const decide = (event: string) => settle({ result: "decided", event, reason: "because", decision: null });
const DETAILS = { createdAt: ACCEPTED, receipt: null, submitAttempts: 0, lastSubmittedAt: null, lostSightAt: null };

/** The ledger in which the intent waits for approval. */
const guarded: Ledger = { ...lane, guard: unusedGuard(approving) };
const awaiting = written(withRow(ROW, guarded), allocate);

describe("an intent that needs approval", () => {
  it("stays in the intake, owns its request id, and is no live transaction", () => {
    const { ledger, changes } = awaiting;
    expect(changes.map(({ kind }) => kind)).toEqual(["awaits"]);
    const approval = { rule: "signer.requireApproval", expiresAt: new Date(3_000), approved: false };
    expect(ledger.intake.get(7)).toEqual({ ...ROW, approval, unanswered: false });
    const row = { state: "CREATED", subState: "AWAITING_APPROVAL", lastEvent: "await", nonce: null, live: false };
    expect(ledger.transactions.get(txId)).toMatchObject({ ...row, steps: 2, details: { ...DETAILS, lastError: null } });
    expect(ledger.requests.get("order")).toMatchObject({ txId, state: "CREATED" });
  });

  it("has a row of its own if it did not come through the intake", () => {
    const { ledger } = written(guarded, { kind: "allocate", floor: 0, items: [{ intent }] });
    expect(ledger.intake.atHand(7)).toBeUndefined();
    expect(ledger.transactions.get(txId)).toMatchObject({ steps: 2, details: { createdAt: NOW } });
  });

  it("gets its nonce once it is approved, with the history of its waiting", () => {
    const approved = written(awaiting.ledger, decide("approve")).ledger;
    expect(approved.transactions.get(txId)).toMatchObject({ state: "CREATED", subState: null, steps: 3 });
    const { ledger, outcome } = written(approved, allocate);
    expect(outcome).toMatchObject({ items: [{ result: "created", nonce: 0, createdAt: ACCEPTED }] });
    expect(ledger.transactions.get(txId)).toMatchObject({ steps: 4, details: { createdAt: ACCEPTED } });
    expect([ledger.intake.get(7), ledger.requests.get("order")]).toMatchObject([null, { txId, nonce: 0 }]);
  });

  it.each([
    ["reject", "REJECTED"],
    ["callOff", "CANCELLED"],
  ])("ends without a nonce by the event %s", (event, subState) => {
    const of = event === "reject" ? awaiting.ledger : written(awaiting.ledger, decide("approve")).ledger;
    const { ledger, changes } = written(of, decide(event));
    expect(changes.map(({ kind }) => kind)).toEqual(["refused", "completed"]);
    const row = { state: "FAILED_FINAL", subState, nonce: null, live: false };
    expect(ledger.transactions.get(txId)).toMatchObject({ ...row, details: { ...DETAILS, lastError: "because" } });
    expect([ledger.intake.get(7), ledger.requests.get("order")]).toMatchObject([null, { txId, state: "FAILED_FINAL" }]);
  });

  it.each([
    ["at its last moment", new Date(2_999), []],
    ["when its time is over", new Date(3_000), ["refused", "completed"]],
  ])("expires by itself, not earlier: %s", (_, at, kinds) => {
    expect(written(awaiting.ledger, decide("expire"), at).changes.map(({ kind }) => kind)).toEqual(kinds);
  });
});

describe("an intent of the intake", () => {
  it("is on hold until its release, and counts both", () => {
    const held = written(withRow(ROW), decide("hold"));
    expect(held.ledger.intake.get(7)).toEqual({ ...ROW, held: true, holds: 1 });
    expect(written(held.ledger, decide("hold")).changes).toEqual([]);
    expect(written(held.ledger, allocate).outcome).toMatchObject({ items: [{ result: "held" }] });
    const released = written(held.ledger, decide("unhold")).ledger;
    expect(released.intake.get(7)).toEqual({ ...ROW, holds: 2 });
    expect(written(released, decide("unhold")).changes).toEqual([]);
    expect(written(released, allocate).ledger.transactions.get(txId)).toMatchObject({ steps: 4 });
  });

  it("becomes a transaction with one step more than it had", () => {
    expect(written(withRow(ROW), allocate).ledger.transactions.get(txId)).toMatchObject({ steps: 2, live: true });
    const direct = written(lane, { kind: "allocate", floor: 0, items: [{ intent }] }).ledger;
    expect(direct.transactions.get(txId)).toMatchObject({ steps: 1, details: { createdAt: NOW } });
  });

  const problem = { code: "SUBMISSION_REJECTED", detail: "no" };
  const refuse = { result: "refused", event: "refuse", reason: "no" };

  it.each([
    ["is declined while its sender waits", ROW, { ...refuse, problem }, ["declined"], null],
    ["is refused if there is nothing to answer", ROW, refuse, ["refused", "completed"], null],
    [
      "is refused once it was answered",
      { ...ROW, unanswered: false },
      { ...refuse, problem },
      ["refused", "completed"],
      null,
    ],
    [
      "stays once it was answered, if only its sender was to know",
      { ...ROW, unanswered: false },
      { ...refuse, problem, ifUnanswered: true },
      [],
      7,
    ],
    ["refers to the transaction of its request", ROW, { result: "alias", of: "other" }, ["aliased"], null],
    ["that is gone is left alone", null, refuse, [], null],
  ] as const)("%s", (_, row, result, kinds, left) => {
    const start = row === null ? { ...lane, intake: lane.intake.with([[7, null]]) } : withRow(row);
    const { ledger, changes } = written(start, settle(result));
    expect(changes.map(({ kind }) => kind)).toEqual(kinds);
    expect(ledger.intake.get(7)?.intakeId ?? null).toBe(left);
    if (row !== null) expect([ledger.intake.get(8), ledger.intake.get(9)]).toEqual([OTHER, OTHER]);
  });

  it("that is refused is no live transaction, and keeps when it was accepted and why it ended", () => {
    const { ledger } = written(withRow(ROW), settle(refuse));
    const row = { nonce: null, live: false, steps: 2, pinned: false, attemptCount: 0 };
    expect(ledger.transactions.get(txId)).toMatchObject({ ...row, details: { ...DETAILS, lastError: "no" } });
    expect(ledger.requests.get("order")).toMatchObject({ txId });
    const reused = written(withRow(ROW), settle({ ...refuse, event: "refuseReusedRequestId" })).ledger;
    expect(reused.requests.get("order")).toBeNull();
  });
});

describe("changes that are folded into a ledger with other rows", () => {
  it("leave out what was not loaded", () => {
    const { repairs, ...rest } = lane;
    const at = NOW;
    expect(fold({ ...rest, repairs: undefined }, [{ kind: "repaired", txId, at }]).repairs).toBeUndefined();
    expect(fold(lane, [{ kind: "repaired", txId, at }]).repairs).toEqual([...(repairs ?? []), at]);
  });

  it("keep a message that was signed in the same commit", () => {
    const policies = forSigner(LANE.signer, { messages: { typedData: [permitRule()] } });
    const request = asked(permitOf(LANE.signer));
    const first = written({ ...lane, guard: unusedGuard(policies) }, { kind: "signMessage", asked: request });
    const again = written(first.ledger, { kind: "signMessage", asked: request });
    expect([first, again].map(({ outcome }) => outcome)).toMatchObject([{ isNew: true }, { isNew: false }]);
    const event = { kind: "sign", signature: "0x01" };
    const signed = written(again.ledger, { kind: "settleMessage", requestId: request.requestId, event }).ledger;
    expect(signed.messages.get(request.requestId)).toMatchObject({ state: "SIGNED", signature: "0x01" });
    expect(signed.messageUse.get("usdc")).toMatchObject({ hour: { signatures: 1 } });
  });
});
