import { expect, it } from "vitest";
import type { Fence, Hex } from "../../../src/domain/lane.ts";
import type { AskedSignature, SignatureRecord } from "../../../src/domain/messages/record.ts";
import type { MessageEvent } from "../../../src/ports/lane-store.ts";
import { aLane, commitOne, holdLane, outcomesOf } from "../../support/lane-samples.ts";
import {
  asked,
  GREETING_RULE,
  greeting,
  permitOf,
  permitPolicy,
  SPENDER,
  signInOf,
} from "../../support/message-samples.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";
import type { Store } from "../store-subject.ts";

const SIGNATURE: Hex = `0x${"1".repeat(128)}1b`;
const OTHER_SIGNATURE: Hex = `0x${"2".repeat(128)}1c`;

/** A message is judged, counted and kept in one commit of its lane's owner, before it is signed. */
export function messagesContract(context: LaneStoreContext): void {
  const under = async (policy: object, work: (store: Store, fence: Fence) => Promise<void>) => {
    const lane = aLane();
    const store = await context.subject.connect(forSigner(lane.signer, policy));
    try {
      await work(store, await holdLane(store, lane));
    } finally {
      await store.close();
    }
  };
  const sign = (store: Store, fence: Fence, request: AskedSignature) =>
    commitOne(store, { kind: "signMessage", fence, asked: request });
  const settle = (store: Store, fence: Fence, { requestId }: AskedSignature, event: MessageEvent) =>
    commitOne(store, { kind: "settleMessage", fence, requestId, event });
  const signed = { kind: "sign", signature: SIGNATURE } as const;
  const approve = { kind: "approve", actor: "operator:boss", reason: "checked" } as const;
  const permit = (fence: Fence, value: number, parts: Partial<AskedSignature> = {}) =>
    asked(permitOf(fence.lane.signer, { value }), parts);
  const stored = async (store: Store, { signatureId }: AskedSignature) =>
    (await store.signature(signatureId)) as SignatureRecord;

  // protects [Messages] src/domain/ledger/messages.ts, src/adapters/postgres/commit/needs.ts
  it("a message that no rule allows is refused, and nothing of it is kept", async () => {
    await under({ to: [SPENDER] }, async (store, fence) => {
      const request = permit(fence, 1);
      expect(await sign(store, fence, request)).toMatchObject({ result: "forbidden", rule: "signer.messages" });
      expect(await store.signature(request.signatureId)).toBeNull();
    });
    const fence = await holdLane(context.store);
    expect(await sign(context.store, fence, permit(fence, 1)), "without policies").toMatchObject({
      ...{ result: "forbidden", rule: "signer.messages" },
    });
  });

  it("an allowed message is kept with what was shown, its asker and its rule, and then with its signature", () =>
    under(permitPolicy(), async (store, fence) => {
      const request = permit(fence, 5, { owner: "checkout", requestId: "permit-1" });
      expect(await sign(store, fence, request)).toMatchObject({ status: "message", result: "kept", isNew: true });
      const { lane } = fence;
      const kept = { ...request, lane, rule: "usdc", amount: 0n, expiresAt: null, decision: null };
      expect(await stored(store, request)).toMatchObject({ ...kept, state: "ALLOWED", signature: null });
      await settle(store, fence, request, signed);
      const after = await stored(store, request);
      expect(after).toMatchObject({ ...kept, state: "SIGNED", signature: SIGNATURE });
      expect(after.signedAt).toBeInstanceOf(Date);
      expect(after.message).toEqual(request.message);
    }));

  // protects [Messages] src/domain/ledger/messages.ts
  it("a repeat finds what was committed and is counted once; of two signatures the first is kept", () =>
    under(permitPolicy({ signatures: { perDay: 1 } }), async (store, fence) => {
      const request = permit(fence, 5, { requestId: "permit-1" });
      await sign(store, fence, request);
      const again = { ...permit(fence, 5), requestId: "permit-1" };
      const repeat = await sign(store, fence, again);
      expect(repeat).toMatchObject({ result: "kept", isNew: false, record: { signatureId: request.signatureId } });
      await settle(store, fence, request, signed);
      const late = await settle(store, fence, request, { kind: "sign", signature: OTHER_SIGNATURE });
      expect(late).toMatchObject({ result: "kept", record: { signature: SIGNATURE } });
      expect(await sign(store, fence, again)).toMatchObject({ record: { signature: SIGNATURE } });
      expect(await sign(store, fence, permit(fence, 6))).toMatchObject({
        rule: "signer.messages.usdc.signatures.perDay",
      });
    }));

  it("a request id of another message, or of another API key, is refused", () =>
    under(permitPolicy(), async (store, fence) => {
      const request = permit(fence, 5, { requestId: "permit-1", owner: "ann" });
      await sign(store, fence, request);
      const other = permit(fence, 6, { requestId: "permit-1", owner: "ann" });
      expect(await sign(store, fence, other)).toMatchObject({ result: "reused", another: false });
      const byBob = permit(fence, 5, { requestId: "permit-1", owner: "bob" });
      expect(await sign(store, fence, byBob)).toMatchObject({ result: "reused", another: true });
    }));

  // protects [Messages] src/domain/ledger/messages.ts
  it("amounts and numbers are counted within one commit, by later commits and by the next owner", () =>
    under(permitPolicy({ amount: { field: "value", perHour: "10" } }), async (store, fence) => {
      const writes = [6, 5, 4].map((value) => ({ kind: "signMessage", fence, asked: permit(fence, value) }) as const);
      const outcomes = await outcomesOf(store, writes);
      expect(outcomes.map((each) => (each.status === "message" ? each.result : each.status))).toEqual([
        ...["kept", "forbidden", "kept"],
      ]);
      await store.releaseLane(fence);
      const next = await context.subject.connect(
        forSigner(fence.lane.signer, permitPolicy({ amount: { field: "value", perHour: "11" } })),
      );
      const taken = await holdLane(next, fence.lane);
      const rule = "signer.messages.usdc.amount.perHour";
      expect(await sign(next, taken, permit(taken, 2))).toMatchObject({ result: "forbidden", rule });
      expect(await sign(next, taken, permit(taken, 1))).toMatchObject({ result: "kept" });
      expect(await outcomesOf(store, [{ kind: "signMessage", fence, asked: permit(fence, 0) }])).toEqual([
        { status: "fenced" },
      ]);
      await next.close();
    }));

  it("what each rule has counted in a lane can be read, with the database's time", () =>
    under(permitPolicy({ amount: { field: "value" } }), async (store, fence) => {
      expect((await store.messageUse(fence.lane)).used).toEqual(new Map());
      for (const value of [6, 5]) await sign(store, fence, permit(fence, value));
      const { at, used } = await store.messageUse(fence.lane);
      const counted = { amount: 11n, signatures: 2 };
      expect([...used]).toEqual([["usdc", { hourMs: expect.any(Number), hour: counted, day: counted }]]);
      expect(at.getTime() - (used.get("usdc")?.hourMs ?? 0)).toBeLessThan(2 * 3_600_000);
      expect((await store.messageUse(aLane())).used.size).toBe(0);
    }));

  it("a message above the bound waits, and is counted when a second key approves it", () =>
    under(
      permitPolicy({ amount: { field: "value", perHour: "10" }, requireApproval: { aboveAmount: "3" } }),
      async (store, fence) => {
        const [first, second] = [permit(fence, 6), permit(fence, 6)];
        for (const request of [first, second]) {
          expect(await sign(store, fence, request)).toMatchObject({ record: { state: "AWAITING_APPROVAL" } });
        }
        const { signer } = fence.lane;
        const waiting = async () =>
          (await store.signatures({ signer, state: "AWAITING_APPROVAL", limit: 9 })).map((each) => each.signatureId);
        expect(await waiting()).toEqual([second.signatureId, first.signatureId]);
        expect(await settle(store, fence, first, signed), "before its approval").toMatchObject({ result: "conflict" });
        expect(await settle(store, fence, first, approve)).toMatchObject({ record: { state: "ALLOWED" } });
        expect(await settle(store, fence, second, approve), "above the hour's limit").toMatchObject({
          ...{ result: "forbidden", rule: "signer.messages.usdc.amount.perHour" },
        });
        expect(await stored(store, second)).toMatchObject({ state: "AWAITING_APPROVAL", decision: null });
        const reject = { ...approve, kind: "reject" } as const;
        expect(await settle(store, fence, second, reject)).toMatchObject({ record: { state: "REJECTED" } });
        expect(await settle(store, fence, second, approve)).toMatchObject({ result: "conflict" });
        expect(await waiting()).toEqual([]);
        const { decision } = await stored(store, first);
        expect(decision).toMatchObject({ actor: "operator:boss", reason: "checked" });
        expect(await settle(store, fence, first, signed)).toMatchObject({ record: { state: "SIGNED" } });
      },
    ));

  // protects [Messages] src/domain/ledger/messages.ts
  it("a message that was allowed and not signed is judged by the policy in force: on a repeat, and with its signature", () =>
    under(permitPolicy({ signatures: { perDay: 1 } }), async (store, fence) => {
      const request = permit(fence, 5);
      await sign(store, fence, request);
      const inForce = async (policy: object) =>
        (await context.subject.connect(forSigner(fence.lane.signer, policy))).close();
      const limits = { signatures: { perDay: 1 } };
      for (const [policy, rule] of [
        [permitPolicy({ ...limits, fields: { value: { max: "4" } } }), "signer.messages.usdc.fields.value"],
        [permitPolicy({ ...limits, requireApproval: {} }), "signer.messages.usdc.requireApproval"],
        [{ to: [SPENDER] }, "signer.messages"],
      ] as const) {
        await inForce(policy);
        expect(await sign(store, fence, request), rule).toMatchObject({ result: "forbidden", rule });
        expect(await settle(store, fence, request, signed), rule).toMatchObject({ result: "forbidden", rule });
        expect(await stored(store, request)).toMatchObject({ state: "ALLOWED", signature: null, rule: "usdc" });
      }
      await inForce(permitPolicy(limits));
      expect(await sign(store, fence, request), "counted once").toMatchObject({ record: { state: "ALLOWED" } });
      expect(await settle(store, fence, request, signed)).toMatchObject({ record: { state: "SIGNED" } });
      expect(await sign(store, fence, permit(fence, 5)), "counted once").toMatchObject({ result: "forbidden" });
      await inForce({ to: [SPENDER] });
      expect(await sign(store, fence, request), "the same answer").toMatchObject({ record: { signature: SIGNATURE } });
    }));

  // protects [Messages] src/domain/ledger/messages.ts
  it("a message that another rule allows in the meantime is counted by that one, within its limits", () =>
    under(permitPolicy({ signatures: { perDay: 3 } }), async (store, fence) => {
      const requests = [permit(fence, 5), permit(fence, 6), permit(fence, 7)] as const;
      for (const request of requests) await sign(store, fence, request);
      const inForce = async (parts: object) =>
        (await context.subject.connect(forSigner(fence.lane.signer, permitPolicy(parts)))).close();
      await inForce({ name: "other", signatures: { perDay: 1 } });
      expect(await sign(store, fence, requests[0])).toMatchObject({ record: { rule: "other", state: "ALLOWED" } });
      const rule = "signer.messages.other.signatures.perDay";
      expect(await settle(store, fence, requests[1], signed)).toMatchObject({ result: "forbidden", rule });
      await inForce({ name: "other", amount: { field: "value", perDay: "11" }, signatures: { perDay: 2 } });
      expect(await settle(store, fence, requests[0], signed)).toMatchObject({
        record: { amount: 5n, state: "SIGNED" },
      });
      expect(await settle(store, fence, requests[1], signed)).toMatchObject({ record: { amount: 6n, rule: "other" } });
      const late = await sign(store, fence, requests[2]);
      expect(late).toMatchObject({ rule: "signer.messages.other.amount.perDay" });
      expect(await stored(store, requests[1])).toMatchObject({ rule: "other", amount: 6n, signature: SIGNATURE });
    }));

  it("a key's rules must allow the message, too", async () => {
    const lane = aLane();
    const keyRules = permitPolicy({ fields: { value: { max: "4" } } });
    const policies = policiesOf({ signers: { [lane.signer]: permitPolicy() }, keys: { shop: keyRules } });
    const store = await context.subject.connect(policies);
    const fence = await holdLane(store, lane);
    expect(await sign(store, fence, permit(fence, 5, { owner: "shop" }))).toMatchObject({
      ...{ result: "forbidden", rule: "key.messages.usdc.fields.value" },
    });
    expect(await sign(store, fence, permit(fence, 4, { owner: "shop" }))).toMatchObject({ result: "kept" });
    await store.close();
  });

  // protects [Messages] src/domain/messages/domain-of.ts
  it("requested signatures are listed by the domain for which they are", async () => {
    const signIn = { name: "login", signIn: { domain: "example.com", chainId: 1, uri: "https://example.com/login" } };
    const rules = { messages: { ...permitPolicy().messages, personal: [signIn] } };
    await under(rules, async (store, fence) => {
      const { signer } = fence.lane;
      const [login, spend] = [asked(signInOf(signer)), permit(fence, 5)];
      for (const request of [login, spend]) {
        expect(await sign(store, fence, request)).toMatchObject({ result: "kept" });
      }
      const of = async (domain: string) =>
        (await store.signatures({ signer, domain, limit: 9 })).map(({ signatureId }) => signatureId);
      expect(await of("USD Coin")).toEqual([spend.signatureId]);
      expect(await of("example.com")).toEqual([login.signatureId]);
      expect(await of("usd coin")).toEqual([]);
    });
  });

  it("requested signatures are listed by signer, asker and state, newest first, in pages", () =>
    under({ messages: { personal: [GREETING_RULE] } }, async (store, fence) => {
      const requests = ["one", "two", "three"].map((text, at) =>
        asked(greeting(text), { owner: at === 1 ? "ann" : "bob" }),
      );
      for (const request of requests) await sign(store, fence, request);
      await settle(store, fence, requests[0] as AskedSignature, signed);
      const { signer, chainId } = fence.lane;
      const ids = async (filter: object) =>
        (await store.signatures({ signer, limit: 10, ...filter })).map(({ signatureId }) => signatureId);
      const [one, two, three] = requests.map(({ signatureId }) => signatureId);
      expect(await ids({})).toEqual([three, two, one]);
      expect(await ids({ owner: "ann" })).toEqual([two]);
      expect(await ids({ state: "SIGNED", chainId })).toEqual([one]);
      expect(await ids({ after: three, limit: 1 })).toEqual([two]);
      expect(await ids({ within: { signers: new Set(), chains: null } })).toEqual([]);
      expect(await ids({ chainId: chainId + 1 })).toEqual([]);
    }));
}
