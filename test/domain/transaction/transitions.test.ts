import { describe, expect, it } from "vitest";
import {
  BARE_STATES,
  IllegalTransition,
  isSettled,
  STATES,
  type Status,
  SUB_STATES,
  type SubState,
  TRANSITIONS,
  type TransitionEvent,
  type TransitionRule,
  transition,
} from "../../../src/domain/transaction/transitions.ts";

const EVENTS = Object.keys(TRANSITIONS) as TransitionEvent[];

/** Every status, and null for "no row yet". */
const STATUSES: readonly (Status | null)[] = [
  null,
  ...STATES.flatMap((state): Status[] => [
    ...(BARE_STATES.includes(state) ? [{ state, subState: null }] : []),
    ...SUB_STATES[state].map((subState): Status => ({ state, subState })),
  ]),
];

function name(status: Status | null): string {
  if (status === null) return "nothing";
  return status.subState === null ? status.state : `${status.state}/${status.subState}`;
}

const TRACKING = [
  "TRACKING/PENDING",
  "TRACKING/BROADCAST",
  "TRACKING/STALE",
  "TRACKING/MINED",
  "TRACKING/UNKNOWN_SUBMIT_RESULT",
];
const UNMINED = ["TRACKING/PENDING", "TRACKING/BROADCAST", "TRACKING/STALE"];
const GRAY = "TRACKING/UNKNOWN_SUBMIT_RESULT";
const FAILED = [
  "FAILED_FINAL/REVERTED",
  "FAILED_FINAL/CANCELLED",
  "FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY",
  "FAILED_FINAL/REJECTED",
  "FAILED_FINAL/REQUEST_ID_REUSED",
  "FAILED_FINAL/EXPIRED",
];

/** The legal transitions, written out again by hand so that the table under test is not compared with itself. */
const LEGAL: Readonly<Record<TransitionEvent, { readonly from: readonly string[]; readonly to: string | "same" }>> = {
  accept: { from: ["nothing"], to: "CREATED" },
  allocate: { from: ["nothing", "CREATED"], to: "ALLOCATED" },
  refuse: { from: ["nothing", "CREATED"], to: "FAILED_FINAL/REJECTED" },
  refuseReusedRequestId: { from: ["nothing", "CREATED"], to: "FAILED_FINAL/REQUEST_ID_REUSED" },
  await: { from: ["CREATED"], to: "CREATED/AWAITING_APPROVAL" },
  approve: { from: ["CREATED/AWAITING_APPROVAL"], to: "CREATED" },
  reject: { from: ["CREATED/AWAITING_APPROVAL"], to: "FAILED_FINAL/REJECTED" },
  expire: { from: ["CREATED", "CREATED/AWAITING_APPROVAL", "ALLOCATED"], to: "FAILED_FINAL/EXPIRED" },
  callOff: { from: ["CREATED", "CREATED/AWAITING_APPROVAL"], to: "FAILED_FINAL/CANCELLED" },
  sign: { from: ["ALLOCATED"], to: "TRACKING/PENDING" },
  broadcast: { from: ["TRACKING/PENDING", "TRACKING/BROADCAST", "TRACKING/STALE"], to: "TRACKING/BROADCAST" },
  stale: { from: ["TRACKING/PENDING", "TRACKING/BROADCAST"], to: "TRACKING/STALE" },
  reprice: { from: [...UNMINED, "STUCK"], to: "TRACKING/PENDING" },
  cancel: { from: [...UNMINED, GRAY, "STUCK"], to: "TRACKING/PENDING" },
  replace: { from: [...UNMINED, GRAY, "STUCK"], to: "TRACKING/PENDING" },
  placeholder: { from: [...UNMINED, GRAY, "STUCK"], to: "TRACKING/PENDING" },
  amend: { from: ["ALLOCATED"], to: "same" },
  decide: { from: ["ALLOCATED", ...TRACKING, "STUCK"], to: "same" },
  hold: { from: ["CREATED", "CREATED/AWAITING_APPROVAL", "ALLOCATED", ...TRACKING, "STUCK"], to: "same" },
  unhold: { from: ["CREATED", "CREATED/AWAITING_APPROVAL", "ALLOCATED", ...TRACKING, "STUCK"], to: "same" },
  stick: { from: [...UNMINED, GRAY], to: "STUCK" },
  unstick: { from: ["STUCK"], to: "TRACKING/PENDING" },
  shiftDown: { from: ["ALLOCATED"], to: "same" },
  giveUp: { from: ["ALLOCATED"], to: "FAILED_FINAL/REJECTED" },
  loseSight: { from: UNMINED, to: GRAY },
  adopt: { from: [GRAY], to: "TRACKING/BROADCAST" },
  sendAnew: { from: [GRAY], to: "TRACKING/PENDING" },
  confirmReplacement: { from: ["TRACKING/MINED"], to: "CONFIRMED/REPLACED" },
  confirmCancel: { from: ["TRACKING/MINED"], to: "FAILED_FINAL/CANCELLED" },
  confirmExpiry: { from: ["TRACKING/MINED"], to: "FAILED_FINAL/EXPIRED" },
  loseNonce: { from: ["TRACKING/MINED"], to: "FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY" },
  resubmit: { from: [...TRACKING, "STUCK"], to: "same" },
  submitFailed: { from: [...TRACKING, "STUCK"], to: "same" },
  mine: { from: [...TRACKING, "STUCK"], to: "TRACKING/MINED" },
  withdraw: { from: ["TRACKING/MINED"], to: "TRACKING/PENDING" },
  confirm: { from: ["TRACKING/MINED"], to: "CONFIRMED" },
  revert: { from: ["TRACKING/MINED"], to: "FAILED_FINAL/REVERTED" },
  reorg: { from: ["CONFIRMED", "CONFIRMED/REPLACED", ...FAILED], to: "TRACKING/PENDING" },
};

describe("the transaction state machine", () => {
  it("has every event of the expected matrix, and no other", () => {
    expect([...EVENTS].sort()).toEqual(Object.keys(LEGAL).sort());
  });

  it("has every status of the expected matrix", () => {
    const known = new Set(STATUSES.map(name));
    const named = Object.values(LEGAL).flatMap(({ from, to }) => [...from, ...(to === "same" ? [] : [to])]);
    expect(named.filter((each) => !known.has(each))).toEqual([]);
  });

  describe.each(EVENTS)("event %s", (event) => {
    const { from: sources, to } = LEGAL[event];

    it.each(STATUSES.filter((status) => sources.includes(name(status))).map((status) => [name(status), status]))(
      "is allowed from %s",
      (_, status) => {
        expect(name(transition(status as Status | null, event))).toBe(to === "same" ? name(status as Status) : to);
      },
    );

    it.each(STATUSES.filter((status) => !sources.includes(name(status))).map((status) => [name(status), status]))(
      "is refused from %s",
      (_, status) => {
        const attempt = () => transition(status as Status | null, event);
        expect(attempt).toThrow(IllegalTransition);
        expect(attempt).toThrow(`${event} is not legal from`);
      },
    );
  });

  it("reaches only statuses that the sub-state lists allow", () => {
    const known = new Set(STATUSES.map(name));
    for (const status of STATUSES) {
      for (const event of EVENTS) {
        try {
          expect(known).toContain(name(transition(status, event)));
        } catch (error) {
          expect(error).toBeInstanceOf(IllegalTransition);
        }
      }
    }
  });

  it("allows an outcome from the chain only in the state TRACKING/MINED", () => {
    const deciding = [
      "confirm",
      "revert",
      "confirmReplacement",
      "confirmCancel",
      "confirmExpiry",
      "loseNonce",
    ] as const;
    for (const event of deciding) {
      const fits = STATUSES.filter((status) => sourcesOf(event).includes(name(status)));
      expect(fits.map(name)).toEqual(["TRACKING/MINED"]);
    }
  });

  it("reports an illegal transition with its event and state", () => {
    expect(() => transition(null, "confirm")).toThrow("confirm is not legal from nothing");
    expect(() => transition({ state: "ALLOCATED", subState: null }, "mine")).toThrow("from ALLOCATED/-");
    expect(() => transition({ state: "TRACKING", subState: "PENDING" }, "confirm")).toThrow("from TRACKING/PENDING");
  });

  it("refuses a resubmit if the transaction does not exist", () => {
    expect(() => transition(null, "resubmit")).toThrow(IllegalTransition);
  });
});

describe("completions in the feed", () => {
  const completing = EVENTS.filter((event) => (TRANSITIONS[event] as TransitionRule).completion !== undefined);

  it("are created by every settled state, by a reorg, and by getting stuck", () => {
    const settling = ["confirm", "revert", "confirmReplacement", "confirmCancel", "confirmExpiry", "loseNonce"];
    const refusing = ["refuse", "refuseReusedRequestId", "giveUp", "reject", "expire", "callOff"];
    expect([...completing].sort()).toEqual([...settling, ...refusing, "reorg", "stick"].sort());
  });

  it.each(completing)("(event %s) have the new state of the transaction, or REORGED after a reorg", (event) => {
    const rule: TransitionRule = TRANSITIONS[event];
    const entered = rule.to === "same" ? null : rule.to.state;
    expect(rule.completion?.state).toBe(event === "reorg" ? "REORGED" : entered);
  });

  it("are marked as settled unless the payload may still execute", () => {
    for (const event of completing) {
      expect((TRANSITIONS[event] as TransitionRule).completion?.settled, event).toBe(
        event !== "reorg" && event !== "stick",
      );
    }
  });
});

describe("transaction states", () => {
  it("are settled exactly if they are CONFIRMED or FAILED_FINAL", () => {
    expect(STATES.filter(isSettled)).toEqual(["CONFIRMED", "FAILED_FINAL"]);
  });

  it("can each exist with a sub-state, without one, or both ways", () => {
    for (const state of STATES) {
      expect(SUB_STATES[state].length > 0 || BARE_STATES.includes(state), state).toBe(true);
    }
  });

  it("have no sub-state name in common", () => {
    const all: SubState[] = STATES.flatMap((state) => [...SUB_STATES[state]]);
    expect(new Set(all).size).toBe(all.length);
  });
});

function sourcesOf(event: TransitionEvent): readonly string[] {
  return LEGAL[event].from;
}
