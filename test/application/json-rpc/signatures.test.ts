/** Tests `personal_sign` and `eth_signTypedData_v4` at `/rpc`, and the refusal of every other method that signs. */
import { afterEach, describe, expect, it } from "vitest";
import type { ApiKey, HttpServerOptions } from "../../../src/adapters/http/exchange/options.ts";
import type { AskedTypedData } from "../../../src/domain/messages/parse-message.ts";
import { call, RpcFace } from "../../support/json-rpc.ts";
import { aPermit, GREETING_RULE, permitPolicy, permitRule } from "../../support/message-samples.ts";
import { policiesOf } from "../../support/policies.ts";
import { CHAIN_ID, SIGNER, SIGNERS, World, type WorldNode } from "../../support/world.ts";

let world: World;
let entry: WorldNode;
let rpc: RpcFace;
let forwarded: string[];
afterEach(() => world.close());

const GREETING = `${GREETING_RULE.prefix}nonce 8fd2a1`;
const HEX = `0x${Buffer.from(GREETING).toString("hex")}`;
const PERMIT = aPermit(SIGNER, { chainId: CHAIN_ID });
const POLICY = { messages: { ...permitPolicy({}, CHAIN_ID).messages, personal: [GREETING_RULE] } };
const SIGNATURE = /^0x[0-9a-f]{130}$/;

async function start(policy: object = POLICY, options: Partial<HttpServerOptions> = {}): Promise<void> {
  world = new World({ policies: policiesOf({ signers: { "*": policy } }) });
  entry = await world.startNode();
  forwarded = [];
  const passOn = entry.rpc.passOn.bind(entry.rpc);
  entry.rpc.passOn = (method, params) => {
    forwarded.push(method);
    return passOn(method, params);
  };
  rpc = new RpcFace(world, entry, options);
}

const secretOf = (name: string) => `${name}-0123456789abcdefghijkl`;
const key = (name: string, more: Partial<ApiKey> = {}): ApiKey => ({ name, secret: secretOf(name), ...more });
const as = (name: string, more: Readonly<Record<string, string>> = {}) => ({
  headers: { authorization: `Bearer ${secretOf(name)}`, ...more },
});
const rows = () => world.database.state.signatures();
const personal = (...params: readonly unknown[]) => rpc.call<string>("personal_sign", params);
const typed = (...params: readonly unknown[]) => rpc.call<string>("eth_signTypedData_v4", params);

describe("personal_sign", () => {
  it("signs hex and text, in either order of the parameters", async () => {
    await start();
    const forms = [
      [HEX, SIGNER],
      [GREETING, SIGNER],
      [SIGNER, HEX],
      [HEX, SIGNER, ""],
      [HEX, SIGNER.toUpperCase().replace("0X", "0x"), null],
    ];
    const signed = await Promise.all(forms.map((params) => personal(...params)));
    for (const { result } of signed) expect(result).toMatch(SIGNATURE);
    expect(new Set(signed.map(({ result }) => result)).size).toBe(1);
    expect(rows()).toHaveLength(forms.length);
    expect(rows()[0]).toMatchObject({ state: "SIGNED", rule: GREETING_RULE.name, message: { bytes: HEX } });
    expect(forwarded).toEqual([]);
  });

  it("takes the first parameter as the message if both are addresses", async () => {
    await start();
    const { error } = await personal(SIGNERS[1], SIGNER);
    expect(error).toMatchObject({ code: -32003, data: { rule: expect.stringMatching(/^signer\.messages/) } });
    expect(rows()).toEqual([]);
  });

  it.each<[string, readonly unknown[], string]>([
    ["no signer", [HEX], "params.1"],
    ["a signer that is no address", [HEX, "alice"], "params.1"],
    ["a message that is no text", [7, SIGNER], "params.0"],
    ["half a byte", ["0xabc", SIGNER], "params.0"],
    ["half a byte behind the signer", [SIGNER, "0xabc"], "params.1"],
    ["a password", [HEX, SIGNER, "hunter2"], "params.2"],
    ["an unknown option", [HEX, SIGNER, { nonce: 1 }], "params.2.nonce"],
    ["a request id that is no text", [HEX, SIGNER, { fencepostRequestId: 7 }], "params.2.fencepostRequestId"],
    ["a fourth parameter", [HEX, SIGNER, null, 1], "params.3"],
    ["a wrong checksum", [HEX, "0xF39fd6e51aad88f6f4ce6ab8827279cfffb92266"], "params.1"],
  ])("names the parameter at fault: %s", async (_, params, path) => {
    await start();
    const { error } = await personal(...params);
    expect(error).toMatchObject({ code: -32602, data: { path } });
    expect(error?.message).not.toContain("hunter2");
    expect(rows()).toEqual([]);
  });

  // protects [Attacks] src/domain/messages/personal-text.ts, src/adapters/http/rpc/signatures.ts
  it("refuses a digest, an authorisation and a transaction, whatever a policy says", async () => {
    await start({ messages: { personal: [{ name: "any", prefix: "aaaaaaaa", maxLength: 100 }] } });
    const refused = [
      `0x${"61".repeat(32)}`,
      `0x05d8${"61".repeat(24)}`,
      `0x02f8${"61".repeat(100)}`,
      `0x1901${"61".repeat(64)}`,
    ];
    for (const bytes of refused) expect((await personal(bytes, SIGNER)).error?.message).toMatch(/never signed/);
    expect((await personal(`0x${"61".repeat(31)}`, SIGNER)).result).toMatch(SIGNATURE);
    expect(rows()).toHaveLength(1);
  });
});

describe("eth_signTypedData_v4", () => {
  it("signs typed data given as an object or as JSON text", async () => {
    await start();
    const domainType = ["name", "version", "chainId", "verifyingContract"];
    const types = ["string", "string", "uint256", "address"];
    const EIP712Domain = domainType.map((name, at) => ({ name, type: types[at] }));
    const whole = { ...PERMIT, types: { ...Object(PERMIT.types), EIP712Domain } };
    const signed = [await typed(SIGNER, PERMIT), await typed(SIGNER, JSON.stringify(whole))];
    expect(signed[0]?.result).toMatch(SIGNATURE);
    expect(signed[1]?.result).toBe(signed[0]?.result);
    expect(forwarded).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ["no JSON", "{", "params.1"],
    ["a list", [PERMIT], "params.1"],
    ["nothing", undefined, "params.1"],
    [
      "a value of another type",
      { ...PERMIT, message: { ...Object(PERMIT.message), value: "a lot" } },
      "params.1.message.value",
    ],
    ["an unknown primary type", { ...PERMIT, primaryType: "Order" }, "params.1.primaryType"],
    ["an unknown member", { ...PERMIT, chainId: 1 }, "params.1.chainId"],
  ])("names the field at fault: %s", async (_, data, path) => {
    await start();
    expect((await typed(SIGNER, data)).error).toMatchObject({ code: -32602, data: { path } });
    expect(rows()).toEqual([]);
  });

  it("names the rule that refuses it", async () => {
    await start();
    const above = aPermit(SIGNER, { chainId: CHAIN_ID, spender: SIGNERS[1] }) as AskedTypedData;
    const { error } = await typed(SIGNER, above);
    expect(error).toMatchObject({ code: -32003, data: { rule: "signer.messages.usdc.fields.spender" } });
    expect((await typed(SIGNERS[0], { ...PERMIT, domain: { name: "usd coin" } })).error?.code).toBe(-32003);
  });

  it("is one signature for one request id, in the header or as the last parameter", async () => {
    await start();
    const header = { headers: { "idempotency-key": "permit-1" } };
    const first = await rpc.call("eth_signTypedData_v4", [SIGNER, PERMIT], header);
    const again = await typed(SIGNER, PERMIT, { fencepostRequestId: "permit-1" });
    expect(again.result).toBe(first.result);
    expect(rows()).toHaveLength(1);
    const other = await typed(SIGNER, aPermit(SIGNER, { chainId: CHAIN_ID, nonce: 1 }), {
      fencepostRequestId: "permit-1",
    });
    expect(other.error).toMatchObject({ code: -32003, data: { code: "REQUEST_ID_REUSED" } });
    const packet = [0, 1].map(() => call("eth_signTypedData_v4", [SIGNER, PERMIT]));
    await rpc.ask(packet, { headers: { "idempotency-key": "batch" } });
    expect(
      rows()
        .map(({ requestId }) => requestId)
        .sort(),
    ).toEqual(["batch:0", "batch:1", "permit-1"]);
  });

  it("that waits for approval names its id, and returns the signature to a repeat afterwards", async () => {
    const rule = permitRule({ requireApproval: { expiresAfter: "1h" } }, CHAIN_ID);
    await start({ messages: { typedData: [rule] } });
    const ask = () => typed(SIGNER, PERMIT, { fencepostRequestId: "permit-1" });
    const { error } = await ask();
    const { signatureId } = rows()[0] ?? {};
    expect(error).toMatchObject({ code: -32003, data: { outcome: "accepted", signatureId, requestId: "permit-1" } });
    expect(error?.message).toMatch(/AWAITING_APPROVAL until .* with the request id permit-1/);
    const decision = { action: "approve", signatureId: String(signatureId), request: { reason: "r" }, actor: "boss" };
    await world.settle(entry.node.api.decideSignature(decision as never));
    expect((await ask()).result).toMatch(SIGNATURE);
  });
});

describe("a signature at /rpc", () => {
  // protects [Attacks] src/adapters/http/rpc/signatures.ts
  it("needs the scope sign, and the signer among the key's own", async () => {
    const scopes = ["read", "sign"] as const;
    const apiKeys = [
      key("signing", { scopes }),
      key("sending", { scopes: ["read", "submit", "operate", "admin", "approve"] }),
      key("elsewhere", { scopes, signers: [SIGNERS[1] as typeof SIGNER] }),
    ];
    await start(POLICY, { apiKeys, rpc: { keyInPath: true, foreignRaw: "refuse" } });
    const ask = (name: string) => rpc.call("personal_sign", [HEX, SIGNER], as(name));
    expect((await ask("signing")).result).toMatch(SIGNATURE);
    expect((await ask("sending")).error).toMatchObject({ code: 4100, data: { rule: "scope:sign" } });
    expect((await ask("elsewhere")).error).toMatchObject({ code: 4100, data: { rule: "signers" } });
    const inPath = await rpc.call("personal_sign", [HEX, SIGNER], { url: `/rpc/key/${secretOf("signing")}` });
    expect(inPath.error).toMatchObject({ code: 4100, data: { rule: "scope:sign" } });
    expect(rows()).toMatchObject([{ owner: "signing" }]);
    expect(rpc.refusals.map(({ rule, key: name }) => `${name} ${rule}`).sort()).toEqual([
      ...["elsewhere signers", "sending scope:sign", "signing scope:sign"],
    ]);
  });

  it("is refused during a kill, and repeated afterwards", async () => {
    await start();
    const kill = { signer: null, actor: "operator:test", request: { reason: "stolen" } };
    await world.settle(entry.node.api.kill(kill));
    expect((await personal(HEX, SIGNER)).error).toMatchObject({ code: -32002, data: { code: "UNAVAILABLE" } });
    await world.settle(entry.node.api.endKill(kill));
    expect((await personal(HEX, SIGNER)).result).toMatch(SIGNATURE);
  });

  it("that takes longer than a client waits may be repeated under its request id", async () => {
    await start();
    const sign = entry.signer.signMessages.bind(entry.signer);
    entry.signer.signMessages = async (address, messages) => {
      await world.clock.sleep(9_000);
      return sign(address, messages);
    };
    const ask = () => personal(HEX, SIGNER, { fencepostRequestId: "login-1" });
    const { error } = await ask();
    expect(error).toMatchObject({ code: -32003, data: { outcome: "unknown" } });
    expect(error?.message).toMatch(/call it again with the request id login-1/);
    entry.signer.signMessages = sign;
    expect((await ask()).result).toMatch(SIGNATURE);
    expect(rows()).toHaveLength(1);
  });

  it("is one of up to a thousand of a batch, beside sends and reads", async () => {
    await start();
    const packet = [
      call("eth_chainId"),
      ...Array.from({ length: 40 }, () => call("personal_sign", [HEX, SIGNER])),
      call("eth_sign", [SIGNER, HEX]),
    ];
    const answers = await rpc.ask<readonly { id: number; result?: string; error?: { code: number } }[]>(packet);
    expect(answers.map(({ id }) => id)).toEqual(packet.map(({ id }) => id));
    expect(answers.filter(({ result }) => SIGNATURE.test(result ?? ""))).toHaveLength(40);
    expect(answers.at(-1)?.error?.code).toBe(-32601);
  });
});

describe("a method that signs in another way", () => {
  it.each([
    ["eth_sign", /no policy can judge; use personal_sign/],
    ["eth_signTransaction", /use eth_sendTransaction/],
    ["eth_signTypedData", /use eth_signTypedData_v4/],
    ["eth_signTypedData_v1", /use eth_signTypedData_v4/],
    ["eth_signTypedData_v3", /use eth_signTypedData_v4/],
    ["eth_signAuthorization", /EIP-7702/],
    ["wallet_signAuthorization", /EIP-7702/],
    // protects [Attacks] src/adapters/http/rpc/signatures.ts, src/adapters/http/rpc/reads.ts
  ])("is refused with a reason, and reaches no endpoint: %s", async (method, reason) => {
    await start({ messages: { personal: [GREETING_RULE] } });
    const { error } = await rpc.call(method, [SIGNER, HEX]);
    expect(error).toMatchObject({ code: -32601, message: expect.stringMatching(reason) });
    expect(forwarded).toEqual([]);
    expect(rows()).toEqual([]);
  });
});
