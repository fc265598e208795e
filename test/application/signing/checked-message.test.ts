import { afterEach, describe, expect, it } from "vitest";
import { ANYBODY } from "../../../src/domain/keys/principal.ts";
import { limitedTo } from "../../support/limited-api.ts";
import { aPermit, GREETING_RULE, type PermitParts, permitRule } from "../../support/message-samples.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import { CHAIN_ID, SIGNER, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const RULES = {
  messages: {
    typedData: [
      permitRule(
        {
          amount: { field: "value", perSignature: "900", perHour: "1000" },
          signatures: { perDay: 4 },
          requireApproval: { aboveAmount: "500" },
        },
        CHAIN_ID,
      ),
    ],
    personal: [GREETING_RULE],
  },
};

async function start(policies = forSigner(SIGNER, RULES)): Promise<WorldNode> {
  world = new World({ policies });
  return world.startNode();
}

const permit = (parts: PermitParts = {}) => ({
  signer: SIGNER,
  typedData: aPermit(SIGNER, { chainId: CHAIN_ID, ...parts }),
});
const check = ({ node }: WorldNode, request: object, key: string | null = null) =>
  world.settle(node.api.checkPolicy(request, key));
const rows = () => world.database.state.signatures();

describe("a dry run of a message", () => {
  // protects [Messages] src/application/operations/policies.ts, src/domain/ledger/judge-message.ts
  it("names the rule that allows it and its windows, keeps nothing and counts nothing", async () => {
    const entry = await start();
    await world.settle(entry.node.api.requestSignature(permit({ value: "300" }), null));
    const hour = { amount: 300n, signatures: 1, maxAmount: 1_000n, maxSignatures: null };
    const counts = { rule: "usdc", amount: 100n, hour, day: { ...hour, maxAmount: null, maxSignatures: 4 } };
    for (const _ of ["once", "again"]) {
      const verdict = await check(entry, permit());
      expect(verdict).toEqual({
        ...{ allowed: true, value: 0n, cost: 0n },
        counts: { ...counts, since: expect.any(Date) },
      });
    }
    expect(await check(entry, { signer: SIGNER, message: "Log in to example.com: 1" })).toMatchObject({
      ...{ allowed: true, counts: { rule: "greeting", amount: 0n, hour: { signatures: 0, maxSignatures: null } } },
    });
    expect(rows()).toHaveLength(1);
  });

  it("names the bound above which it needs approval", async () => {
    const entry = await start();
    const verdict = await check(entry, permit({ value: "501" }));
    expect(verdict).toMatchObject({
      allowed: true,
      awaitsApproval: true,
      rule: "signer.messages.usdc.requireApproval",
    });
  });

  it("gives the answer that the request itself gets", async () => {
    const entry = await start();
    await world.settle(entry.node.api.requestSignature(permit({ value: "400" }), null));
    await world.settle(entry.node.api.requestSignature(permit({ value: "450" }), null));
    for (const [request, rule] of [
      [permit({ value: "901" }), "signer.messages.usdc.amount.perSignature"],
      [permit({ value: "151" }), "signer.messages.usdc.amount.perHour"],
      [permit({ spender: SIGNER }), "signer.messages.usdc.fields.spender"],
      [{ signer: SIGNER, message: "Hello" }, "signer.messages.greeting.prefix"],
      [{ signer: SIGNER, message: { raw: `0x${"ab".repeat(32)}` } }, "signer.messages.digest"],
    ] as const) {
      expect(await check(entry, request)).toMatchObject({ allowed: false, rule });
      const refused = await world.refusal(entry.node.api.requestSignature(request, null));
      expect(refused).toMatchObject({ code: "FORBIDDEN", extras: { rule } });
    }
    expect(await check(entry, permit({ value: "150" }))).toMatchObject({ allowed: true });
  });

  it("is judged by the rules of another API key, too, and refused for a signer that is not the caller's", async () => {
    const keys = { shop: { messages: { typedData: [permitRule({ fields: { value: { max: "9" } } }, CHAIN_ID)] } } };
    const entry = await start(policiesOf({ signers: { [SIGNER]: RULES }, keys }));
    expect(await check(entry, permit(), "shop")).toMatchObject({ rule: "key.messages.usdc.fields.value" });
    expect(await check(entry, permit(), "other")).toMatchObject({ allowed: true });
    const elsewhere = new Set([`0x${"9".repeat(40)}`] as const);
    const limited = limitedTo({ ...ANYBODY, name: "x", scopes: new Set(["read"]), signers: elsewhere }, entry.node.api);
    const refused = await world.refusal(limited.checkPolicy(permit()));
    expect(refused).toMatchObject({ code: "FORBIDDEN", extras: { rule: "signers" } });
  });

  it("is invalid for a message and a payload at once, and forbidden without a policy", async () => {
    const entry = await start(policiesOf({}));
    const both = { ...permit(), payload: { to: SIGNER } };
    expect(await world.refusal(entry.node.api.checkPolicy(both))).toMatchObject({ code: "INVALID_REQUEST" });
    expect(await check(entry, permit())).toMatchObject({ allowed: false, rule: "signer.messages" });
  });
});
