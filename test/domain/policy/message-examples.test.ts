/** The rules of docs/messages.md are what readers copy: they parse, and judge what the contracts take. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { fieldsOf, type Types } from "../../../src/domain/messages/message.ts";
import { parseTypedData } from "../../../src/domain/messages/parse-message.ts";
import { judgeMessage, type TypedDataRule } from "../../../src/domain/policy/message-rules.ts";
import { decodeType } from "../../../src/domain/policy/parse-message-rules.ts";
import { policiesOf } from "../../support/policies.ts";

const codec = createCodec();
const text = readFileSync("docs/messages.md", "utf8");
const documents = [...text.matchAll(/^```json\n(.*?)^```/gms)].map(([, json = ""]) => JSON.parse(json) as unknown);
const rules = documents.flatMap((document) =>
  [...policiesOf(document).signers.values()].flatMap(({ messages }) => messages?.typedData ?? []),
);
const AT = new Date("2026-11-18T12:00:00.000Z");
const SIGNER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/** A value of a type that lies within the rule's bounds; other fields are zero or empty. */
function within(rule: TypedDataRule, types: Types, type: string, path = ""): unknown {
  if (type.endsWith("]")) return [within(rule, types, type.slice(0, type.indexOf("[")), path)];
  if (Object.hasOwn(types, type)) {
    const members = fieldsOf(types, type).map(({ name, type: of }) => {
      return [name, within(rule, types, of, path === "" ? name : `${path}.${name}`)];
    });
    return Object.fromEntries(members);
  }
  const bound = rule.fields.find((each) => each.path.join(".") === path);
  const [allowed] = bound?.in ?? [];
  if (allowed !== undefined) return allowed;
  if (bound?.withinSeconds) return Math.floor(AT.getTime() / 1_000) + bound.withinSeconds;
  if (type === "bool") return true;
  if (type === "string") return "";
  if (type === "address") return `0x${"0".repeat(40)}`;
  return type.startsWith("bytes") ? `0x${"0".repeat(64)}` : "0";
}

function judged(rule: TypedDataRule, change: (message: Record<string, unknown>) => object = (message) => message) {
  const struct = decodeType(rule.type);
  if (struct === null) throw new Error(`${rule.name} has no type`);
  const message = within(rule, struct.types, struct.primaryType) as Record<string, unknown>;
  const asked = { domain: rule.domain, ...struct, message: change(message) };
  return judgeMessage({ typedData: [rule], personal: [] }, parseTypedData(asked, codec), {
    ...{ chainId: 1, signer: SIGNER, at: AT },
  });
}

describe("the rules of the page about messages", () => {
  it("are those of the usual permits and orders", () => {
    expect(rules.map(({ name }) => name)).toEqual([
      ...["usdc-permit", "dai-permit", "permit2-single", "permit2-transfer", "cow-order", "seaport-order"],
    ]);
  });

  it.each(rules.map((rule) => [rule.name, rule] as const))("%s allows a message within its bounds", (_, rule) => {
    expect(judged(rule)).toMatchObject({ rule: { name: rule.name } });
  });

  it.each(rules.map((rule) => [rule.name, rule] as const))("%s bounds a receiver or a token, and time", (_, rule) => {
    expect(rule.fields.some((bound) => bound.in !== null)).toBe(true);
    expect(rule.fields.some(({ withinSeconds }) => withinSeconds !== null)).toBe(true);
    expect(rule.amount !== null || rule.requireApproval !== null).toBe(true);
  });

  it("refuse a permit to another spender, and one that never ends", () => {
    const [usdc, dai] = rules as [TypedDataRule, TypedDataRule];
    expect(judged(usdc, (permit) => ({ ...permit, spender: SIGNER }))).toHaveProperty("refused");
    expect(judged(usdc, (permit) => ({ ...permit, deadline: String((1n << 256n) - 1n) }))).toHaveProperty("refused");
    expect(judged(dai, (permit) => ({ ...permit, expiry: "0" }))).toHaveProperty("refused");
  });
});
