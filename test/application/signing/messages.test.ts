import { afterEach, describe, expect, it } from "vitest";
import type { SignedMessage } from "../../../src/application/operations/messages.ts";
import { ANYBODY, type Scope } from "../../../src/domain/keys/principal.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import type { MessageToSign } from "../../../src/domain/messages/message.ts";
import type { Failpoint } from "../../../src/ports/failpoints.ts";
import { SignerAway, SigningRefused } from "../../../src/ports/signer.ts";
import { deferred } from "../../support/deferred.ts";
import { limitedTo } from "../../support/limited-api.ts";
import { aPermit, GREETING_RULE, type PermitParts, permitPolicy } from "../../support/message-samples.ts";
import { enforced, forSigner, policiesOf } from "../../support/policies.ts";
import { CHAIN_ID, type NodeOptions, SIGNER, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const ACTOR = "operator:ops";

async function start(policy: object = permitPolicy({}, CHAIN_ID), options: NodeOptions = {}): Promise<WorldNode> {
  world = new World({ policies: forSigner(SIGNER, policy) });
  return world.startNode(options);
}

const permit = (parts: PermitParts & { requestId?: string } = {}) => {
  const { requestId, ...rest } = parts;
  const typedData = aPermit(SIGNER, { chainId: CHAIN_ID, ...rest });
  return { signer: SIGNER, typedData, ...(requestId !== undefined && { requestId }) };
};
const sign = ({ node }: WorldNode, request: object = permit(), owner: string | null = null): Promise<SignedMessage> =>
  world.settle(node.api.requestSignature(request, owner));
const refusal = ({ node }: WorldNode, request: object = permit(), owner: string | null = null) =>
  world.refusal(node.api.requestSignature(request, owner));
const rows = () => world.database.state.signatures();

/** Counts what the key holder is asked to sign; `before` runs before each signature. */
function watchHolder({ signer }: WorldNode, before: () => Promise<void> = async () => undefined) {
  const asked: MessageToSign[] = [];
  const original = signer.signMessages.bind(signer);
  signer.signMessages = async (address, messages) => {
    asked.push(...messages);
    await before();
    return original(address, messages);
  };
  return asked;
}

/** Calls `act` once, at this failpoint. */
const at = (name: Failpoint, act: () => Promise<void> | void): NodeOptions => {
  let isDone = false;
  return {
    failpoint: async (reached) => {
      if (reached !== name || isDone) return;
      isDone = true;
      await act();
    },
  };
};

const kill = ({ node }: WorldNode) => node.api.kill({ signer: null, request: { reason: "stolen" }, actor: ACTOR });
const endKill = ({ node }: WorldNode) =>
  world.settle(node.api.endKill({ signer: null, request: undefined, actor: ACTOR }));
const laneAction = ({ node }: WorldNode, action: "suspend" | "resume") =>
  node.api.actOnLane({ action, signer: SIGNER, request: { reason: "maintenance" }, actor: ACTOR });
const results = ({ events }: WorldNode) =>
  events.flatMap((event) => (event.type === "message.answered" ? [event.result] : []));

describe("a request for a signature", () => {
  it("is committed with what was shown, its asker and its rule, and answered with the signature", async () => {
    const entry = await start();
    const answer = await sign(entry, permit({ requestId: "permit-1" }), "checkout");
    expect(answer).toMatchObject({ requestId: "permit-1", kind: "typedData", rule: "usdc", state: "SIGNED" });
    expect(answer.signature).toMatch(/^0x[0-9a-f]{130}$/);
    expect(rows()).toMatchObject([{ signature: answer.signature, digest: answer.digest, owner: "checkout" }]);
    const view = await world.settle(entry.node.api.signature(answer.signatureId));
    expect(view).toMatchObject({ owner: "checkout", state: "SIGNED", message: null });
    expect(view.typedData?.message).toMatchObject({ value: "100" });
    expect(view).not.toHaveProperty("signature");
    const { items } = await world.settle(entry.node.api.signatures({ key: "checkout" }));
    expect(items).toEqual([view]);
    expect(results(entry)).toEqual(["signed"]);
  });

  // protects [Messages] src/application/operations/messages.ts, src/domain/ledger/messages.ts
  it("gets the same answer again at every node, and is counted once", async () => {
    const entry = await start(permitPolicy({ signatures: { perDay: 1 } }, CHAIN_ID));
    const other = await world.startNode();
    const asked = watchHolder(entry);
    const all = await Promise.all([entry, other, entry].map((node) => sign(node, permit({ requestId: "permit-1" }))));
    const repeat = await sign(other, permit({ requestId: "permit-1" }));
    expect(new Set([...all, repeat].map(({ signature }) => signature)).size).toBe(1);
    expect(rows()).toHaveLength(1);
    expect(asked.length, "simultaneous repeats may both be signed").toBeLessThanOrEqual(3);
    expect(await refusal(other, permit({ value: "1" }))).toMatchObject({
      ...{ code: "FORBIDDEN", extras: { rule: "signer.messages.usdc.signatures.perDay" } },
    });
  });

  it("of simultaneous ones over two nodes, no more are signed than the hour allows", async () => {
    const entry = await start(permitPolicy({ amount: { field: "value", perHour: "500" } }, CHAIN_ID));
    const other = await world.startNode();
    const attempts = Array.from({ length: 12 }, (_, nonce) =>
      (nonce % 2 === 0 ? entry : other).node.api.requestSignature(permit({ nonce })).then(
        ({ state }) => state,
        ({ code }: { code: string }) => code,
      ),
    );
    const outcomes = await world.settle(Promise.all(attempts));
    expect(outcomes.filter((each) => each === "SIGNED")).toHaveLength(5);
    expect(outcomes.filter((each) => each === "FORBIDDEN")).toHaveLength(7);
  });

  it("is refused if its request id belongs to another message", async () => {
    const entry = await start();
    await sign(entry, permit({ requestId: "permit-1" }));
    const changed = await refusal(entry, permit({ requestId: "permit-1", value: "101" }));
    expect(changed).toMatchObject({ code: "REQUEST_ID_REUSED" });
    await sign(entry, permit({ requestId: "permit-2" }), "ann");
    const others = await refusal(entry, permit({ requestId: "permit-2" }), "bob");
    expect(others).toMatchObject({ code: "REQUEST_ID_REUSED" });
    expect(rows()).toHaveLength(2);
  });

  it.each([
    ["a permit above its bound", permit({ value: "1001" }), "signer.messages.usdc.fields.value"],
    ["a domain in another case", permit({ domain: { name: "Usd Coin" } }), "signer.messages.usdc.domain.name"],
    ["a domain with a homoglyph", permit({ domain: { name: "USD Сoin" } }), "signer.messages.usdc.domain.name"],
    ["a personal message", { signer: SIGNER, message: "Log in to example.com: 1" }, "signer.messages"],
  ])("is refused for %s, and nothing of it is kept", async (_, request, rule) => {
    const entry = await start(permitPolicy({ fields: { value: { max: "1000" } } }, CHAIN_ID));
    const asked = watchHolder(entry);
    expect(await refusal(entry, request)).toMatchObject({ code: "FORBIDDEN", extras: { rule } });
    expect([rows(), asked]).toEqual([[], []]);
    expect(results(entry)).toEqual(["refused"]);
  });

  it("is refused for every message without a policy", async () => {
    world = new World();
    const entry = await world.startNode();
    expect(await refusal(entry)).toMatchObject({ code: "FORBIDDEN", extras: { rule: "signer.messages" } });
  });
});

describe("a stop of the signer", () => {
  // protects [Messages] src/application/operations/messages.ts
  it("that is in force refuses a signature before anything is kept", async () => {
    const entry = await start();
    const asked = watchHolder(entry);
    await world.settle(kill(entry));
    const refused = await refusal(entry, permit({ requestId: "permit-1" }));
    expect(refused).toMatchObject({ code: "UNAVAILABLE", message: expect.stringContaining("a kill is in force") });
    await endKill(entry);
    await world.settle(laneAction(entry, "suspend"));
    expect(await refusal(entry)).toMatchObject({ code: "UNAVAILABLE", message: expect.stringContaining("suspended") });
    expect([rows(), asked]).toEqual([[], []]);
    await world.settle(laneAction(entry, "resume"));
    expect(await sign(entry, permit({ requestId: "permit-1" }))).toMatchObject({ state: "SIGNED" });
  });

  it.each([
    ["a kill", kill, endKill],
    [
      "a suspension",
      (entry: WorldNode) => laneAction(entry, "suspend"),
      (entry: WorldNode) => world.settle(laneAction(entry, "resume")),
    ],
    // protects [Messages] src/application/operations/messages.ts
  ])("of %s between the commit and the key holder keeps the holder from being asked", async (_, begin, end) => {
    const point = at("message.committed", async () => void (await begin(entry)));
    const entry = await start(permitPolicy({ signatures: { perDay: 1 } }, CHAIN_ID), point);
    const asked = watchHolder(entry);
    expect(await refusal(entry, permit({ requestId: "permit-1" }))).toMatchObject({ code: "UNAVAILABLE" });
    expect(asked).toEqual([]);
    expect(rows()).toMatchObject([{ state: "ALLOWED", signature: null }]);
    await end(entry);
    expect(await sign(entry, permit({ requestId: "permit-1" }))).toMatchObject({ state: "SIGNED" });
  });

  it.each([
    ["a kill", kill],
    ["a suspension", (entry: WorldNode) => laneAction(entry, "suspend")],
    // protects [Messages] src/application/operations/messages.ts
  ])("of %s while the key holder signs keeps the signature from leaving", async (_, begin) => {
    const entry = await start();
    watchHolder(entry, async () => void (await begin(entry)));
    expect(await refusal(entry, permit({ requestId: "permit-1" }))).toMatchObject({ code: "UNAVAILABLE" });
    expect(rows()).toMatchObject([{ state: "ALLOWED", signature: null }]);
    expect(results(entry)).toEqual(["stopped"]);
  });

  // protects [Messages] src/application/operations/messages.ts
  it("while the signature is stored keeps the answer back; a repeat gets it afterwards", async () => {
    const entry = await start(
      permitPolicy({}, CHAIN_ID),
      at("message.stored", async () => void (await kill(entry))),
    );
    expect(await refusal(entry, permit({ requestId: "permit-1" }))).toMatchObject({ code: "UNAVAILABLE" });
    const [{ state, signature } = { state: null, signature: null }] = rows();
    expect(state).toBe("SIGNED");
    await endKill(entry);
    expect(await sign(entry, permit({ requestId: "permit-1" }))).toMatchObject({ signature });
  });

  // protects [Messages] src/application/operations/messages.ts
  it("refuses also a repeat of what was signed before", async () => {
    const entry = await start();
    const { signature } = await sign(entry, permit({ requestId: "permit-1" }));
    await world.settle(kill(entry));
    expect(await refusal(entry, permit({ requestId: "permit-1" }))).toMatchObject({ code: "UNAVAILABLE" });
    await endKill(entry);
    expect(await sign(entry, permit({ requestId: "permit-1" }))).toMatchObject({ signature });
  });

  it("by the end of its lease drops the signature; the next owner signs the same digest, counted once", async () => {
    const entry = await start(permitPolicy({ signatures: { perDay: 1 } }, CHAIN_ID));
    const other = await world.startNode();
    const gate = deferred<void>();
    watchHolder(entry, () => gate.promise);
    const first = entry.node.api.requestSignature(permit({ requestId: "permit-1" })).then(
      () => "answered",
      ({ code }: { code: string }) => code,
    );
    await world.until(() => rows().length === 1);
    entry.store.cut();
    await world.until(() => world.ownerOf(SIGNER) === "node-2");
    gate.resolve();
    expect(await world.settle(first)).not.toBe("answered");
    expect(rows()).toMatchObject([{ state: "ALLOWED", signature: null }]);
    expect(await sign(other, permit({ requestId: "permit-1" }))).toMatchObject({ state: "SIGNED" });
    expect(rows()).toMatchObject([{ state: "SIGNED" }]);
  });
});

describe("a policy that changes meanwhile", () => {
  const limits = { signatures: { perDay: 1 } };
  const enforce = (entry: WorldNode, parts: object) =>
    enforced(entry.store, forSigner(SIGNER, permitPolicy({ ...limits, ...parts }, CHAIN_ID)));
  const stricter = { fields: { value: { max: "9" } } };
  const rule = "signer.messages.usdc.fields.value";

  // protects [Messages] src/domain/ledger/messages.ts
  it.each(["message.committed", "message.signed"] as const)(
    "at %s keeps the signature back; a later policy that allows it gets it signed, and counted once",
    async (point) => {
      const change = at(point, async () => void (await enforce(entry, stricter)));
      const entry = await start(permitPolicy(limits, CHAIN_ID), change);
      for (const _ of ["first", "repeat"]) {
        const refused = await refusal(entry, permit({ requestId: "permit-1" }));
        expect(refused).toMatchObject({ code: "FORBIDDEN", extras: { rule } });
        expect(rows()).toMatchObject([{ state: "ALLOWED", signature: null }]);
      }
      expect(results(entry)).toEqual(["refused", "refused"]);
      await world.settle(enforce(entry, {}));
      expect(await sign(entry, permit({ requestId: "permit-1" }))).toMatchObject({ state: "SIGNED" });
      expect(await refusal(entry, permit({ value: "1" }))).toMatchObject({ code: "FORBIDDEN" });
    },
  );

  it("after a crash refuses what the next owner finds allowed", async () => {
    const entry = await start(
      permitPolicy(limits, CHAIN_ID),
      at("message.committed", () => world.crash(entry)),
    );
    const lost = entry.node.api.requestSignature(permit({ requestId: "permit-1" })).catch(() => undefined);
    await world.until(() => rows().length === 1);
    const other = await world.startNode();
    const asked = watchHolder(other);
    await world.until(() => world.ownerOf(SIGNER) === "node-2");
    await world.settle(enforce(other, stricter));
    const refused = await refusal(other, permit({ requestId: "permit-1" }));
    expect(refused).toMatchObject({ code: "FORBIDDEN", extras: { rule } });
    expect([rows()[0]?.signature, asked]).toEqual([null, []]);
    await world.settle(lost);
  });
});

describe("a crash of the owner", () => {
  // protects [Messages] src/domain/ledger/messages.ts
  it.each(["message.committed", "message.signed", "message.stored"] as const)(
    "at %s leaves a request whose repeat is signed once, and counted once",
    async (point) => {
      const entry = await start(
        permitPolicy({ signatures: { perDay: 1 } }, CHAIN_ID),
        at(point, () => world.crash(entry)),
      );
      const lost = entry.node.api.requestSignature(permit({ requestId: "permit-1" })).catch(() => undefined);
      await world.until(() => rows().length === 1);
      const other = await world.startNode();
      await world.until(() => world.ownerOf(SIGNER) === "node-2");
      const answer = await sign(other, permit({ requestId: "permit-1" }));
      expect(rows()).toMatchObject([{ state: "SIGNED", signature: answer.signature }]);
      expect(await refusal(other, permit({ value: "1" }))).toMatchObject({ code: "FORBIDDEN" });
      await world.settle(lost);
    },
  );
});

describe("the key holder", () => {
  const holding = async (failure: () => Error) => {
    const entry = await start();
    const original = entry.signer.signMessages.bind(entry.signer);
    entry.signer.signMessages = () => Promise.reject(failure());
    const refused = await refusal(entry, permit({ requestId: "permit-1" }));
    entry.signer.signMessages = original;
    return { entry, refused };
  };

  it("that does not answer is reported as such, and a repeat is signed", async () => {
    const { entry, refused } = await holding(() => new SignerAway("connection refused"));
    expect(refused).toMatchObject({ code: "UNAVAILABLE", message: expect.stringContaining("does not answer") });
    expect(await sign(entry, permit({ requestId: "permit-1" }))).toMatchObject({ state: "SIGNED" });
  });

  it("that refuses has the last word", async () => {
    const { refused } = await holding(() => new SigningRefused(0, "no rule allows it"));
    expect(refused).toMatchObject({ code: "FORBIDDEN", extras: { rule: "signer.keyHolder" } });
  });
});

describe("a signature that needs approval", () => {
  const asKey = ({ node }: WorldNode, name: string, ...scopes: readonly Scope[]) =>
    limitedTo({ ...ANYBODY, name, scopes: new Set(scopes) }, node.api);
  const decide = (action: "approve" | "reject", signatureId: string, actor = "operator:boss") => {
    return { action, signatureId, request: { reason: "checked" }, actor };
  };
  const bound = { amount: { field: "value" }, requireApproval: { aboveAmount: "50", expiresAfter: "60s" } };
  const request = permit({ requestId: "permit-1" });
  const waiting = async () => {
    const entry = await start(permitPolicy(bound, CHAIN_ID));
    const answer = await sign(entry, request, "ann");
    expect(answer).toMatchObject({ state: "AWAITING_APPROVAL", signature: null });
    return { entry, signatureId: answer.signatureId };
  };

  // protects [Messages] src/application/authority.ts
  it("is signed for its asker once a second key has approved it", async () => {
    const { entry, signatureId } = await waiting();
    const ann = asKey(entry, "ann", "sign", "approve", "read");
    const boss = asKey(entry, "boss", "approve", "read");
    const own = await world.refusal(ann.decideSignature(decide("approve", signatureId)));
    expect(own).toMatchObject({ code: "FORBIDDEN", extras: { rule: "owner" } });
    const unable = await world.refusal(asKey(entry, "joe", "read").decideSignature(decide("approve", signatureId)));
    expect(unable).toMatchObject({ code: "FORBIDDEN", extras: { rule: "scope:approve" } });
    expect(await sign(entry, request, "ann")).toMatchObject({ state: "AWAITING_APPROVAL" });
    for (const _ of ["once", "again"]) {
      const view = await world.settle(boss.decideSignature(decide("approve", signatureId)));
      expect(view).toMatchObject({ decision: { actor: "operator:boss", reason: "checked" } });
    }
    expect(await sign(entry, request, "ann")).toMatchObject({ state: "SIGNED", signatureId });
    const late = await world.refusal(boss.decideSignature(decide("reject", signatureId)));
    expect(late).toMatchObject({ code: "CONFLICT" });
  });

  it("is never signed after a rejection, or if nobody approved it in time", async () => {
    const { entry, signatureId } = await waiting();
    const other = permit({ requestId: "permit-1", value: "51" });
    expect(await refusal(entry, other, "ann"), "while it waits").toMatchObject({ code: "REQUEST_ID_REUSED" });
    const asked = watchHolder(entry);
    await world.settle(entry.node.api.decideSignature(decide("reject", signatureId)));
    expect(await refusal(entry, request, "ann")).toMatchObject({ code: "CONFLICT" });
    expect(await refusal(entry, other, "ann"), "once rejected").toMatchObject({ code: "REQUEST_ID_REUSED" });
    const { signatureId: forgotten } = await sign(entry, permit({ requestId: "permit-2" }), "ann");
    await world.clock.advance(61_000);
    const late = await world.refusal(entry.node.api.decideSignature(decide("approve", forgotten)));
    expect(late).toMatchObject({ code: "CONFLICT" });
    expect(await refusal(entry, permit({ requestId: "permit-2" }), "ann")).toMatchObject({ code: "CONFLICT" });
    expect(
      rows()
        .map(({ state }) => state)
        .sort(),
    ).toEqual(["EXPIRED", "REJECTED"]);
    expect(asked).toEqual([]);
  });

  it("is judged by the policy in force when it is approved", async () => {
    const { entry, signatureId } = await waiting();
    await world.settle(
      enforced(entry.store, forSigner(SIGNER, permitPolicy({ ...bound, fields: { value: { max: "9" } } }, CHAIN_ID))),
    );
    const refused = await world.refusal(entry.node.api.decideSignature(decide("approve", signatureId)));
    expect(refused).toMatchObject({ code: "FORBIDDEN", extras: { rule: "signer.messages.usdc.fields.value" } });
  });
});

describe("a key that is limited to other signers", () => {
  // protects [Messages] src/application/authority.ts
  it("can neither ask for a signature nor see one", async () => {
    world = new World({ policies: policiesOf({ signers: { "*": { messages: { personal: [GREETING_RULE] } } } }) });
    const entry = await world.startNode();
    const message = "Log in to example.com: 1";
    const { signatureId, signature } = await sign(entry, { signer: SIGNER, message });
    expect((signature as Hex).length).toBe(132);
    const scopes = new Set(["sign", "read", "approve"] as const);
    const elsewhere = { ...ANYBODY, name: "x", scopes, signers: new Set([`0x${"9".repeat(40)}`] as const) };
    const limited = limitedTo(elsewhere, entry.node.api);
    expect(await world.refusal(limited.requestSignature({ signer: SIGNER, message }))).toMatchObject({
      code: "FORBIDDEN",
    });
    expect(await world.refusal(limited.signature(signatureId))).toMatchObject({ code: "NOT_FOUND" });
    expect(await world.settle(limited.signatures({}))).toEqual({ items: [], next: null });
    const decision = { action: "approve", signatureId, request: { reason: "x" }, actor: ACTOR } as const;
    expect(await world.refusal(limited.decideSignature(decision))).toMatchObject({ code: "NOT_FOUND" });
  });
});
