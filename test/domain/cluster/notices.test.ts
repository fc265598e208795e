import { describe, expect, it } from "vitest";
import { isVanished, judgeAcknowledgement, type Notice, timesOf } from "../../../src/domain/cluster/notices.ts";
import { ofNotice } from "../../../src/domain/troubles/find.ts";

const AT = new Date("2026-11-02T10:00:00.000Z");
const SIGNER = `0x${"a".repeat(40)}` as const;
const HASH = `0x${"5".repeat(64)}` as const;
const fingerprint = `0x${"1".repeat(64)}` as const;

const foreign: Notice = {
  ...{ noticeId: "n", kind: "EXTERNAL_KEY_USE", lane: { chainId: 5, signer: SIGNER }, nodeId: null },
  ...{ firstSeenAt: AT, lastSeenAt: AT, times: 1, overAt: null, acknowledged: null },
  evidence: [{ at: AT, nonce: 31, through: 31, txHash: HASH, txId: "t" }],
};
const vanished: Notice = {
  ...foreign,
  ...{ kind: "NODE_VANISHED", lane: null, nodeId: "node-b" },
  evidence: [{ at: AT, instanceId: "i", why: "expired", lanes: 3 }],
};
const asked = { noticeId: "n", by: "operator:ada", why: "known", times: null, actionKey: null };

describe("an operator notice", () => {
  it("about another program that uses a key has the severity CRITICAL", () => {
    const trouble = ofNotice(foreign);
    expect(trouble).toMatchObject({
      ...{ id: "notice:n", severity: "CRITICAL", code: "EXTERNAL_KEY_USE", since: AT, over: false },
      ...{ chainId: 5, signer: SIGNER, nonce: 31, txId: "t" },
    });
    expect(trouble.sentence).toContain(`nonce 31 went to ${HASH}`);
    expect(trouble.actions.map(({ action, path, body }) => [action, path, body])).toEqual([
      ["acknowledge", "/api/v1/notices/n/acknowledge", { times: 1 }],
      ["suspendLane", `/api/v1/signers/${SIGNER}/suspend`, { chainId: 5 }],
      ["killSigner", `/api/v1/signers/${SIGNER}/kill`, {}],
    ]);
  });

  it("about another program that uses a key lists the nonces without a known transaction", () => {
    const evidence = [{ at: AT, nonce: 31, through: 33, txHash: null, txId: null }];
    expect(ofNotice({ ...foreign, evidence, times: 3 }).sentence).toContain("the chain counts nonces 31 to 33");
    expect(timesOf({ nonce: 31, through: 33 })).toBe(3);
  });

  it("about a vanished node has the severity ERROR", () => {
    expect(ofNotice(vanished)).toMatchObject({
      severity: "ERROR",
      code: "NODE_VANISHED",
      nodeId: "node-b",
      signer: null,
    });
    expect(ofNotice(vanished).sentence).toMatch(/node-b vanished without draining: its heartbeat ran out.*3 lanes/);
  });

  it.each([
    [{ draining: false, lanes: 0 }, true],
    [{ draining: true, lanes: 2 }, true],
    [{ draining: true, lanes: 0 }, false],
  ])("about a vanished node with the last state %o is created: %s", (instance, expected) =>
    expect(isVanished(instance)).toBe(expected),
  );
});

describe("an operator's acknowledgement of a notice", () => {
  const done = { acknowledged: { by: "operator:ada", at: AT, why: "known" }, times: 2 };
  const actionKey = { key: "k", fingerprint };

  it.each([
    ["is written if there is none", { acknowledged: null, times: 2 }, null, asked, "acknowledge"],
    [
      "is written if nothing happened since",
      { acknowledged: null, times: 2 },
      null,
      { ...asked, times: 2 },
      "acknowledge",
    ],
    ["is refused if it happened again since", { acknowledged: null, times: 3 }, null, { ...asked, times: 2 }, "grown"],
    ["is unchanged if the same person repeats it", done, null, asked, "stands"],
    ["is refused if another person made one", done, null, { ...asked, by: "operator:bob" }, "taken"],
    ["is refused with another text", done, null, { ...asked, why: "stolen" }, "taken"],
    ["is repeated under its key", done, actionKey, { ...asked, actionKey }, "stands"],
    [
      "is refused if its key belongs to another action",
      done,
      actionKey,
      { ...asked, actionKey: { ...actionKey, fingerprint: HASH } },
      "reused",
    ],
    ["is refused under another key", done, actionKey, { ...asked, actionKey: { ...actionKey, key: "l" } }, "taken"],
  ] as const)("follows the rule that it %s", (_, notice, kept, words, expected) => {
    expect(judgeAcknowledgement(notice, kept, words)).toBe(expected);
  });
});
