import fc from "fast-check";
import { getAddress, serializeTransaction } from "viem";
import { createSiweMessage } from "viem/siwe";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import type { Message } from "../../../src/domain/messages/message.ts";
import { parsePersonal, parseTypedData } from "../../../src/domain/messages/parse-message.ts";
import {
  beyondWindows,
  countedAlso,
  judgeMessage,
  type MessageContext,
  type MessageRules,
  messageApproval,
  UNUSED_RULE,
  wholeOf,
} from "../../../src/domain/policy/message-rules.ts";
import { parsePolicies } from "../../../src/domain/policy/parse.ts";
import { aPermit, GREETING_RULE, type PermitParts, permitRule, SPENDER } from "../../support/message-samples.ts";
import { policiesOf } from "../../support/policies.ts";

const codec = createCodec();
const SIGNER = `0x${"a".repeat(40)}` as const;
const AT = new Date("2026-11-18T12:34:56.000Z");
const NOW = Math.floor(AT.getTime() / 1_000);
const HERE: MessageContext = { chainId: 1, signer: SIGNER, at: AT };

function rulesOf(messages: object): MessageRules {
  const rules = policiesOf({ signers: { [SIGNER]: { messages } } }).signers.get(SIGNER)?.messages;
  if (!rules) throw new Error("there are no rules");
  return rules;
}

/** The refusing rule; null if the message is allowed. */
function refusalOf(rules: MessageRules | null, message: Message, context = HERE): string | null {
  const judged = judgeMessage(rules, message, context);
  return "refused" in judged ? judged.refused.rule : null;
}

const permit = (parts: PermitParts = {}) => parseTypedData(aPermit(SIGNER, parts), codec);
const text = (content: string) => parsePersonal(content);
const raw = (bytes: string) => parsePersonal({ raw: bytes });

describe("a rule for typed data", () => {
  const rules = rulesOf({
    typedData: [
      permitRule({
        fields: { spender: { in: [SPENDER] }, value: { max: "1000", min: "1" }, deadline: { withinSeconds: 3_600 } },
      }),
    ],
  });
  const soon = String(NOW + 3_600);
  const within = (parts: PermitParts = {}) => permit({ deadline: soon, ...parts });

  it.each<readonly [string, PermitParts, string | null]>([
    ["the bounds themselves", { value: "1000" }, null],
    ["a value above the bound", { value: "1001" }, "fields.value"],
    ["a value above the bound in hex", { value: "0x3e9" }, "fields.value"],
    ["the largest value", { value: String((1n << 256n) - 1n) }, "fields.value"],
    ["a value below the bound", { value: "0" }, "fields.value"],
    ["another spender", { spender: `0x${"b".repeat(40)}` }, "fields.spender"],
    ["the spender in other letters", { spender: getAddress(SPENDER) }, null],
    ["a deadline a second too far", { deadline: String(NOW + 3_601) }, "fields.deadline"],
    ["a deadline that never comes", { deadline: String((1n << 256n) - 1n) }, "fields.deadline"],
    ["a deadline that is over", { deadline: "1" }, null],
    ["a name in other letters", { domain: { name: "USD coin" } }, "domain.name"],
    ["a name with a space behind it", { domain: { name: "USD Coin " } }, "domain.name"],
    ["a name with a zero-width space", { domain: { name: "USD\u200b Coin" } }, "domain.name"],
    ["a name with a Cyrillic letter", { domain: { name: "USD Сoin" } }, "domain.name"],
    ["a name in another normal form", { domain: { name: "USD Coïn".normalize("NFD") } }, "domain.name"],
    ["another version", { domain: { version: "2.0" } }, "domain.version"],
    ["no version", { domain: { version: undefined } }, "domain.version"],
    ["a salt beside it", { domain: { salt: `0x${"0".repeat(64)}` } }, "domain.salt"],
    ["another contract", { domain: { verifyingContract: SPENDER } }, "domain.verifyingContract"],
    ["another chain", { domain: { chainId: 10 } }, "domain.chainId"],
    ["no chain", { domain: { chainId: undefined } }, "domain.chainId"],
    // protects [Messages] src/domain/policy/message-rules.ts
  ])("judges a permit with %s", (_, parts, place) => {
    expect(refusalOf(rules, within(parts))).toBe(place === null ? null : `messages.usdc.${place}`);
  });

  it("does not allow a signer on another chain than the domain's", () => {
    expect(refusalOf(rules, within(), { ...HERE, chainId: 10 })).toBe("messages.usdc.domain.chainId");
  });

  it("does not judge time without the database's clock", () => {
    expect(refusalOf(rules, within({ deadline: "9999999999" }), { ...HERE, at: null })).toBeNull();
  });

  it("compares the whole type: neither other fields, nor other structs under the same names", () => {
    const asked = aPermit(SIGNER, { deadline: soon });
    const fields = (asked.types as { Permit: { name: string; type: string }[] }).Permit;
    const narrower = fields.map((each) => (each.name === "value" ? { ...each, type: "uint128" } : each));
    const renamed = { ...asked, types: { Permit: narrower } };
    expect(refusalOf(rules, parseTypedData(renamed, codec))).toBe("messages.usdc.type");
    const swapped = { ...asked, types: { Permit: [...fields].reverse() } };
    expect(refusalOf(rules, parseTypedData(swapped, codec))).toBe("messages.usdc.type");
  });

  it("without any rules refuses every message", () => {
    expect(refusalOf(null, within())).toBe("messages");
    expect(refusalOf(rulesOf({}), within())).toBe("messages");
    expect(refusalOf(rules, text("Log in to example.com: 1"))).toBe("messages");
  });

  it("is passed over for a later one that allows the message", () => {
    const two = rulesOf({
      typedData: [
        permitRule({ name: "small", fields: { value: { max: "10" } } }),
        permitRule({ name: "large", fields: { spender: { in: [SPENDER] } } }),
      ],
    });
    const nameOf = (parts: PermitParts) => {
      const judged = judgeMessage(two, permit(parts), HERE);
      return "refused" in judged ? judged.refused.rule : judged.rule.name;
    };
    expect(nameOf({ value: "10" })).toBe("small");
    expect(nameOf({ value: "11" })).toBe("large");
    expect(nameOf({ value: "11", spender: SIGNER }), "the closest one is reported").toBe("messages.small.fields.value");
  });

  it("bounds nested fields, each element of a list, and counts the sum of a list", () => {
    const type =
      "PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)PermitDetails(address token,uint160 amount)";
    const batch = rulesOf({
      typedData: [
        {
          ...{ name: "batch", domain: { name: "Permit2", chainId: 1, verifyingContract: SPENDER }, type },
          fields: { "details.token": { in: [SPENDER] }, "details.amount": { max: "10" } },
          amount: { field: "details.amount", perSignature: "15" },
        },
      ],
    });
    const asked = (amounts: readonly number[], token: string = SPENDER) =>
      parseTypedData(
        {
          domain: { name: "Permit2", chainId: 1, verifyingContract: SPENDER },
          types: {
            PermitBatch: [
              { name: "details", type: "PermitDetails[]" },
              { name: "spender", type: "address" },
              { name: "sigDeadline", type: "uint256" },
            ],
            PermitDetails: [
              { name: "token", type: "address" },
              { name: "amount", type: "uint160" },
            ],
          },
          primaryType: "PermitBatch",
          message: { details: amounts.map((amount) => ({ token, amount })), spender: SPENDER, sigDeadline: 1 },
        },
        codec,
      );
    expect(judgeMessage(batch, asked([10, 5]), HERE)).toMatchObject({ amount: 15n });
    expect(refusalOf(batch, asked([1, 11, 1]))).toBe("messages.batch.fields.details.amount");
    expect(refusalOf(batch, asked([10, 6]))).toBe("messages.batch.amount.perSignature");
    expect(refusalOf(batch, asked([1], SIGNER))).toBe("messages.batch.fields.details.token");
    expect(refusalOf(batch, asked([]))).toBeNull();
  });

  it("allows exactly the values within its bounds", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2_000n), fc.bigInt(0n, 2_000n), fc.bigInt(0n, 2_000n), (value, one, other) => {
        const [min, max] = one < other ? [one, other] : [other, one];
        const bounded = rulesOf({ typedData: [permitRule({ fields: { value: { min: `${min}`, max: `${max}` } } })] });
        const isAllowed = refusalOf(bounded, permit({ value: String(value) })) === null;
        expect(isAllowed).toBe(value >= min && value <= max);
      }),
    );
  });
});

describe("a personal message", () => {
  const rules = rulesOf({ personal: [GREETING_RULE] });
  const legacy = serializeTransaction({ to: SPENDER, gas: 21_000n, gasPrice: 7n, value: 5n, nonce: 1 });

  it.each([
    ["32 bytes", raw(`0x${"41".repeat(32)}`), "messages.digest"],
    ["32 characters that begin with the prefix", text("Log in to example.com: 12345678x"), "messages.digest"],
    ["no bytes", raw("0x"), "messages.empty"],
    ["a legacy transaction", raw(legacy), "messages.transaction"],
    ["a transaction of EIP-1559", raw(`0x02${legacy.slice(2)}`), "messages.transaction"],
    ["an authorisation of EIP-7702", raw(`0x05d8${"80".repeat(24)}`), "messages.transaction"],
    ["the digest input of typed data", raw(`0x1901${"00".repeat(64)}`), "messages.prefix"],
    ["the prefix of EIP-191", text("\x19Ethereum Signed Message:\n2hi"), "messages.prefix"],
    ["bytes that are no UTF-8", raw(`0x${Buffer.from("Log in to example.com: ").toString("hex")}ff`), "messages.text"],
    ["a surrogate in UTF-8", raw("0x4c6f6720696e20746f206578616d706c652e636f6d3a20eda080"), "messages.text"],
    ["NUL", text("Log in to example.com: \0"), "messages.text"],
    ["a carriage return", text("Log in to example.com: \rtransfer all"), "messages.text"],
    ["a direction mark", text("Log in to example.com: \u202ella refsnart"), "messages.text"],
    ["a zero-width space", text("Log in to example.com: \u200b"), "messages.text"],
    ["a line separator", text("Log in to example.com: \u2028x"), "messages.text"],
    ["a byte order mark before the prefix", text("\ufeffLog in to example.com: 1"), "messages.text"],
    // protects [Messages] src/domain/messages/personal-text.ts
  ])("is never signed with %s", (_, message, rule) => {
    expect(refusalOf(rules, message)).toBe(rule);
  });

  it.each([
    ["its prefix", "Log in to example.com: 8fd2a1", null],
    ["its prefix alone", "Log in to example.com: ", null],
    ["a second line", "Log in to example.com: 8fd2a1\nsession 7", null],
    ["a line before the prefix", "\nLog in to example.com: 1", "messages.greeting.prefix"],
    ["a space before the prefix", " Log in to example.com: 1", "messages.greeting.prefix"],
    ["the prefix in other letters", "log in to example.com: 1", "messages.greeting.prefix"],
    ["a homoglyph in the prefix", "Log in to exаmple.com: 1", "messages.greeting.prefix"],
    ["half of the prefix", "Log in to example", "messages.greeting.prefix"],
    ["more bytes than allowed", `Log in to example.com: ${"é".repeat(29)}`, "messages.greeting.maxLength"],
    ["exactly as many bytes", `Log in to example.com: ${"x".repeat(57)}`, null],
    [
      "the sign-in of a site behind the prefix",
      "Log in to example.com: evil.com wants you to sign in with your Ethereum account:\n",
      "messages.greeting.prefix",
    ],
  ])("is judged by prefix and length: %s", (_, content, rule) => {
    expect(refusalOf(rules, text(content))).toBe(rule);
  });

  it("with a prefix rule is allowed if and only if it begins with the prefix", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 40 }),
        fc.string({ unit: "grapheme", maxLength: 20 }),
        (before, rest) => {
          const content = `${before}Log in to example.com: ${rest}`;
          if (refusalOf(rules, text(content)) === null)
            expect(content.startsWith("Log in to example.com: ")).toBe(true);
        },
      ),
    );
  });
});

describe("Sign-In with Ethereum", () => {
  const signIn = { domain: "example.com", chainId: 1, uri: "https://example.com/login" };
  const rules = rulesOf({ personal: [{ name: "login", signIn }] });
  const base = {
    ...signIn,
    address: getAddress(SIGNER),
    nonce: "8fd2a1bc",
    version: "1" as const,
    issuedAt: new Date("2026-11-18T12:00:00.000Z"),
  };
  const siwe = (parts: Partial<Parameters<typeof createSiweMessage>[0]> = {}) =>
    createSiweMessage({ ...base, ...parts });
  const login = (part: string) => `messages.login.signIn${part}`;

  it.each([
    ["the plain form", siwe()],
    ["a statement", siwe({ statement: "I accept the terms." })],
    ["an expiry", siwe({ expirationTime: new Date("2026-11-18T13:00:00.000Z"), notBefore: base.issuedAt })],
    ["a request id", siwe({ requestId: "login-7" })],
  ])("is allowed in %s", (_, content) => {
    expect(refusalOf(rules, text(content))).toBeNull();
  });

  it.each([
    ["another domain", siwe({ domain: "evil.com" }), login(".domain")],
    ["a subdomain", siwe({ domain: "example.com.evil.com" }), login(".domain")],
    ["a scheme before the domain", siwe({ scheme: "https" }), login(".domain")],
    ["another uri", siwe({ uri: "https://evil.com/login" }), login(".uri")],
    ["another chain", siwe({ chainId: 10 }), login(".chainId")],
    ["another address", siwe({ address: getAddress(SPENDER) }), login(".address")],
    ["resources, which may carry rights", siwe({ resources: ["urn:recap:x"] }), login(".resources")],
    ["another version", siwe().replace("Version: 1", "Version: 2"), login(".version")],
    ["no nonce", siwe().replace(/Nonce: .*\n/, ""), login("")],
    ["an empty nonce", siwe().replace(/Nonce: .*\n/, "Nonce: \n"), login("")],
    ["a nonce of seven characters", siwe().replace("8fd2a1bc", "8fd2a1b"), login("")],
    ["two nonces", siwe().replace(/(Nonce: .*\n)/, "$1$1"), login("")],
    ["a line before it", `x\n${siwe()}`, login("")],
    ["a line behind it", `${siwe()}\n`, login("")],
    ["a statement of two lines", siwe({ statement: "a" }).replace("\na\n", "\na\nb\n"), login("")],
    ["a second sign-in in the statement", siwe({ statement: "x" }).replace("\nx\n", `\n${siwe()}\n`), login("")],
    ["no time of issue", siwe().replace(/\nIssued At: .*/, ""), login("")],
    // protects [Messages] src/domain/messages/sign-in.ts
  ])("is refused with %s", (_, content, rule) => {
    expect(refusalOf(rules, text(content))).toBe(rule);
  });

  it("is refused for a signer on another chain", () => {
    expect(refusalOf(rules, text(siwe()), { ...HERE, chainId: 10 })).toBe(login(".chainId"));
  });
});

describe("the limits of hours and days", () => {
  const limited = rulesOf({
    typedData: [
      permitRule({
        amount: { field: "value", perHour: "100", perDay: "150" },
        signatures: { perHour: 3, perDay: 5 },
      }),
    ],
  });

  it("equal those of a list of all signatures", () => {
    const steps = fc.array(fc.tuple(fc.nat(60), fc.nat(80 * 60_000)), { maxLength: 40 });
    fc.assert(
      fc.property(steps, (asked) => {
        let [use, atMs] = [UNUSED_RULE, AT.getTime()];
        const signed: { amount: number; atMs: number }[] = [];
        for (const [amount, passedMs] of asked) {
          atMs += passedMs;
          const judged = judgeMessage(limited, permit({ value: String(amount) }), HERE);
          if ("refused" in judged) throw new Error(judged.refused.detail);
          const within = (ms: number) => signed.filter((each) => Math.floor(each.atMs / ms) === Math.floor(atMs / ms));
          const sum = (ms: number) => within(ms).reduce((total, each) => total + each.amount, amount);
          const areFew = within(3_600_000).length < 3 && within(86_400_000).length < 5;
          const isFree = sum(3_600_000) <= 100 && sum(86_400_000) <= 150 && areFew;
          const at = new Date(atMs);
          expect(beyondWindows(judged.rule, use, wholeOf(judged), at) === null).toBe(isFree);
          if (!isFree) continue;
          use = countedAlso(use, wholeOf(judged), at);
          signed.push({ amount, atMs });
        }
      }),
    );
  });

  it("do not refuse what adds nothing to a sum that is above them already", () => {
    const judged = judgeMessage(limited, permit({ value: "0" }), HERE);
    if ("refused" in judged) throw new Error(judged.refused.detail);
    const full = { amount: 900n, signatures: 9 };
    const use = { hourMs: AT.getTime(), hour: full, day: full };
    expect(beyondWindows(judged.rule, use, { amount: 0n, signatures: 0 }, AT)).toBeNull();
    expect(beyondWindows(judged.rule, use, { amount: 0n, signatures: 1 }, AT)?.rule).toContain("signatures.perHour");
  });

  it("ask for approval above an amount, or always", () => {
    const approvalOf = (requireApproval: object, value: string) => {
      const rules = rulesOf({ typedData: [permitRule({ amount: { field: "value" }, requireApproval })] });
      const judged = judgeMessage(rules, permit({ value }), HERE);
      return "refused" in judged ? null : messageApproval(judged);
    };
    expect(approvalOf({ aboveAmount: "100" }, "100")).toBeNull();
    expect(approvalOf({ aboveAmount: "100", expiresAfter: "60s" }, "101")).toMatchObject({ expiresAfterMs: 60_000 });
    expect(approvalOf({}, "0")).toMatchObject({ rule: "messages.usdc.requireApproval" });
  });
});

describe("a policy document with rules about messages", () => {
  const mistakesOf = (messages: object, kind: "signers" | "keys" = "signers") => {
    const name = kind === "signers" ? SIGNER : "shop";
    const parsed = parsePolicies({ [kind]: { [name]: { messages } } }, codec);
    return "mistakes" in parsed ? parsed.mistakes.map((each) => each.replace(`${kind}.${name}.messages.`, "")) : [];
  };
  const typed = (parts: object) => ({ typedData: [permitRule(parts)] });
  const personal = (parts: object) => ({ personal: [{ ...GREETING_RULE, ...parts }] });

  it.each([
    ["an unknown field", typed({ primaryType: "Permit" }), /typedData\.0\.primaryType is not a known field/],
    ["a name with a space", typed({ name: "my rule" }), /typedData\.0\.name is not a name/],
    ["two rules of one name", { ...typed({ name: "greeting" }), ...personal({}) }, /two rules named greeting/],
    ["an empty domain", typed({ domain: {} }), /domain has no field/],
    [
      "a domain with another field",
      typed({ domain: { name: "x", contract: SPENDER } }),
      /domain\.contract is not a known/,
    ],
    ["a type that is a name only", typed({ type: "Permit" }), /type is not a type as EIP-712 encodes it/],
    ["a type with a space too many", typed({ type: "Permit(address  owner)" }), /type is not a type/],
    ["a type that lacks a struct", typed({ type: "Permit(Details details)", fields: {} }), /type is not a type/],
    ["structs in another order", typed({ type: "P(A a,B b)B(bool x)A(bool x)", fields: {} }), /type is not a type/],
    [
      "a bound of an unknown field",
      typed({ fields: { amount: { max: "1" } } }),
      /fields\.amount is no field of Permit/,
    ],
    ["a bound that bounds nothing", typed({ fields: { value: {} } }), /fields\.value has none of/],
    [
      "a maximum of an address",
      typed({ fields: { spender: { max: "1" } } }),
      /spender\.max bounds a field that is no number/,
    ],
    ["an amount as a number", typed({ fields: { value: { max: 1 } } }), /value\.max is not a whole number as text/],
    ["an address that is none", typed({ fields: { spender: { in: ["0x1"] } } }), /spender\.in\.0 /],
    [
      "seconds for a text",
      typed({ fields: { owner: { withinSeconds: 5 } } }),
      /withinSeconds bounds a field that is no uint/,
    ],
    ["an amount that is no uint", typed({ amount: { field: "spender" } }), /amount\.field is no uint/],
    ["approval above no amount", typed({ requireApproval: { aboveAmount: "1" } }), /the rule names no amount/],
    ["a short prefix", personal({ prefix: "Hi" }), /prefix is not plain text of at least 8/],
    ["a prefix with NUL", personal({ prefix: "Log in\u0007 here" }), /prefix is not plain text/],
    [
      "a prefix that is a sign-in",
      personal({ prefix: "x wants you to sign in with your Ethereum account:" }),
      /prefix is not plain/,
    ],
    ["no length", personal({ maxLength: undefined }), /maxLength is not a number of bytes/],
    [
      "both kinds",
      personal({ signIn: { domain: "a", chainId: 1, uri: "b" } }),
      /either prefix and maxLength, or signIn/,
    ],
    [
      "a sign-in without a domain",
      { personal: [{ name: "x", signIn: { chainId: 1, uri: "b" } }] },
      /signIn\.domain is not printable/,
    ],
  ])("is refused with %s", (_, messages, mistake) => {
    expect(mistakesOf(messages).join("\n")).toMatch(mistake);
  });

  it("has limits of hours and days for signers only", () => {
    const limits = typed({ signatures: { perHour: 1 }, amount: { field: "value", perDay: "1" } });
    expect(mistakesOf(limits)).toEqual([]);
    expect(mistakesOf(limits, "keys")).toHaveLength(2);
    expect(mistakesOf(typed({ amount: { field: "value", perSignature: "1" } }), "keys")).toEqual([]);
  });
});
