import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hostileMessages, hostileRules } from "../../support/hostile-messages.ts";
import { aPermit } from "../../support/message-samples.ts";
import { forSigner } from "../../support/policies.ts";
import { CHAIN_ID, SIGNER, World, type WorldNode } from "../../support/world.ts";

let world: World;
let entry: WorldNode;
beforeAll(async () => {
  world = new World({ policies: forSigner(SIGNER, { messages: hostileRules(CHAIN_ID) }) });
  entry = await world.startNode();
  entry.signer.signMessages = () => Promise.reject(new Error("the key holder was asked"));
});
afterAll(() => world.close());

const rows = () => world.database.state.signatures();

describe("an attacker who may ask for signatures", () => {
  // protects [Messages] src/domain/policy/message-rules.ts, src/domain/messages/parse-message.ts, src/domain/messages/personal-text.ts
  it.each(hostileMessages(SIGNER, CHAIN_ID))("gets none of $what", async ({ request, rule }) => {
    const asked = { signer: SIGNER, ...request };
    const before = rows().length;
    const refused = await world.refusal(entry.node.api.requestSignature(asked, "attacker"));
    const expected = rule === null ? { code: "INVALID_REQUEST" } : { code: "FORBIDDEN", extras: { rule } };
    expect(refused).toMatchObject(expected);
    expect(rows()).toHaveLength(before);
  });

  it("gets judged and signed what a repeated JSON key says last, not first", async () => {
    const { message, ...rest } = aPermit(SIGNER, { chainId: CHAIN_ID, domain: { name: "Coïn" } });
    const members = JSON.stringify(message).replace('"value":"100"', '"value":"100","value":"1001"');
    const typedData = JSON.parse(
      JSON.stringify({ ...rest, message: 0 }).replace('"message":0', `"message":${members}`),
    );
    const refused = await world.refusal(entry.node.api.requestSignature({ signer: SIGNER, typedData }, "attacker"));
    expect(refused).toMatchObject({ code: "FORBIDDEN", extras: { rule: "signer.messages.permit.fields.value" } });
  });

  it("is asked by the same rules at the edge of each bound, in every notation of a number", async () => {
    const check = (typedData: object) => world.settle(entry.node.api.checkPolicy({ signer: SIGNER, typedData }));
    for (const value of ["1000", "0x3e8", "0001000", "0x0003E8", 1000, 1000n])
      for (const chainId of [CHAIN_ID, String(CHAIN_ID), `0x${CHAIN_ID.toString(16)}`, BigInt(CHAIN_ID)])
        expect(await check(aPermit(SIGNER, { value, domain: { name: "Coïn", chainId } }))).toMatchObject({
          ...{ allowed: true, counts: { rule: "permit" } },
        });
  });
});
