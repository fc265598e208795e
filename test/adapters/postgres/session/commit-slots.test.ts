import { describe, expect, it } from "vitest";
import { CLOSED, CommitSlots } from "../../../../src/adapters/postgres/session/commit-slots.ts";

const kept = (slots: CommitSlots, found: Parameters<CommitSlots["areKept"]>[1]) =>
  slots.areKept(slots.expected(), found);

describe("rows with commit markers", () => {
  it("are reused when they are released", () => {
    const slots = new CommitSlots("store");
    const [first, second] = [slots.take(), slots.take()];
    expect(first).not.toBe(second);
    slots.give(first);
    expect(slots.takeFresh()).toBe(3);
    expect(slots.take()).toBe(first);
  });

  it("are not reused while an earlier commit may still reach the database", () => {
    const slots = new CommitSlots("store");
    const slot = slots.take();
    slots.acknowledged(slot, "a", 0);
    slots.sent(slot, "b");
    slots.retire(slot);
    slots.give(slot);
    expect(slots.take()).not.toBe(slot);
    for (const marker of ["a", "b", CLOSED]) expect(kept(slots, [{ slot, marker }]), marker).toBe(true);
  });

  it("prove a loss of data if the marker of an acknowledged commit is missing", () => {
    const slots = new CommitSlots("store");
    expect(kept(slots, []), "nothing was acknowledged").toBe(true);
    slots.acknowledged(1, "a", 0);
    expect(kept(slots, [])).toBe(false);
    expect(kept(slots, [{ slot: 1, marker: "older" }])).toBe(false);
    expect(kept(slots, [{ slot: 2, marker: "a" }])).toBe(false);
    expect(kept(slots, [{ slot: 1, marker: "a" }])).toBe(true);
  });

  it("may contain the old or the new marker while the newest commit has no answer", () => {
    const slots = new CommitSlots("store");
    slots.sent(1, "a");
    slots.acknowledged(1, "a", 0);
    slots.sent(1, "b");
    expect(kept(slots, [{ slot: 1, marker: "b" }])).toBe(true);
    expect(kept(slots, [{ slot: 1, marker: "a" }])).toBe(true);
    slots.acknowledged(1, "b", 1);
    expect(kept(slots, [{ slot: 1, marker: "b" }])).toBe(true);
    expect(kept(slots, [{ slot: 1, marker: "a" }])).toBe(false);
  });

  it("may contain the old or the new marker if a commit is acknowledged during the read", () => {
    const slots = new CommitSlots("store");
    slots.sent(1, "a");
    slots.acknowledged(1, "a", 0);
    const expected = slots.expected();
    slots.sent(1, "b");
    slots.acknowledged(1, "b", 1);
    expect(slots.areKept(expected, [{ slot: 1, marker: "a" }]), "read before").toBe(true);
    expect(slots.areKept(expected, [{ slot: 1, marker: "b" }]), "read after").toBe(true);
    expect(slots.areKept(expected, [{ slot: 1, marker: "older" }])).toBe(false);
  });

  it("need no check if their commit is over a minute older than the newest commit", () => {
    const slots = new CommitSlots("store");
    slots.acknowledged(1, "old", 0);
    slots.acknowledged(2, "new", 60_001);
    expect(kept(slots, [{ slot: 2, marker: "new" }])).toBe(true);
    slots.acknowledged(2, "new", 60_000);
    expect(kept(slots, [{ slot: 2, marker: "new" }])).toBe(false);
  });

  it("are forgotten if they belong to another database history", () => {
    const slots = new CommitSlots("store");
    slots.acknowledged(1, "a", 0);
    slots.acknowledged(2, "b", 0);
    slots.forgetAllBut(2);
    expect(kept(slots, [{ slot: 2, marker: "b" }])).toBe(true);
    expect(kept(slots, [])).toBe(false);
  });
});
