/** Messages that attackers ask a key to sign, the rules that must refuse them, and the rule or field that does. */
import type { Address } from "../../src/domain/lane.ts";
import { aPermit, PERMIT_TYPE, type PermitParts, SPENDER, TOKEN } from "./message-samples.ts";

export interface Hostile {
  readonly what: string;
  readonly request: { readonly message?: unknown; readonly typedData?: unknown };
  /** Place of the refusing rule, as in `extras.rule`; null: the request is invalid, so that no rule judges it. */
  readonly rule: string | null;
}

const LOGIN = { domain: "example.com", uri: "https://example.com/login" };
const TRADE_TYPE = "Trade(Item[] items,address to)Item(address token,uint256 amount)";

export const hostileRules = (chainId: number) => ({
  typedData: [
    {
      name: "permit",
      domain: { name: "Coïn".normalize("NFC"), version: "2", chainId, verifyingContract: TOKEN },
      type: PERMIT_TYPE,
      fields: { spender: { in: [SPENDER] }, value: { max: "1000" } },
    },
    {
      name: "trade",
      domain: { name: "Market", chainId },
      type: TRADE_TYPE,
      fields: { to: { in: [SPENDER] }, "items.token": { in: [TOKEN] }, "items.amount": { max: "10" } },
      amount: { field: "items.amount", perSignature: "15" },
    },
  ],
  personal: [
    { name: "greeting", prefix: "Log in to example.com: ", maxLength: 80 },
    { name: "login", signIn: { ...LOGIN, chainId } },
  ],
});

const MAX = (1n << 256n) - 1n;

function permits(signer: Address, chainId: number): readonly Hostile[] {
  const permit = (parts: PermitParts) =>
    aPermit(signer, { chainId, ...parts, domain: { name: "Coïn".normalize("NFC"), ...parts.domain } });
  const of = (what: string, parts: PermitParts, place: string | null): Hostile => ({
    what: `a permit with ${what}`,
    request: { typedData: permit(parts) },
    rule: place === null ? null : `signer.messages.permit.${place}`,
  });
  const above = ["1001", "0x3e9", "01001", "0x00000000000003e9", String(MAX), `0x${MAX.toString(16)}`, 1001];
  const invalid = [
    "1e3",
    "1_000",
    "1,000",
    "+1000",
    "-1",
    "-0x1",
    "0X3e8",
    "1000n",
    "",
    " 1000",
    "1000\n",
    "१०००",
    "0b1",
  ];
  const numbers = [1e21, -1, 1.5, 2 ** 53, null, true, ["1000"], { valueOf: 1 }, String(MAX + 1n)];
  const plain = permit({});
  const message = plain.message as Record<string, unknown>;
  const fields = (plain.types as { Permit: { name: string; type: string }[] }).Permit;
  const other = (what: string, change: object, rule: string | null): Hostile => ({
    what,
    request: { typedData: { ...plain, ...change } },
    rule,
  });
  const wrongType = "signer.messages.permit.type";
  return [
    ...above.map((value) => of(`the value ${JSON.stringify(value)}`, { value }, "fields.value")),
    ...[...invalid, ...numbers].map((value) => of(`no number but ${JSON.stringify(value)}`, { value }, null)),
    of("a domain in other letters", { domain: { name: "COÏN" } }, "domain.name"),
    of("a domain in another normal form", { domain: { name: "Coïn".normalize("NFD") } }, "domain.name"),
    of("a homoglyph in its domain", { domain: { name: "Соïn" } }, "domain.name"),
    of("a zero-width joiner in its domain", { domain: { name: "Co\u200dïn" } }, "domain.name"),
    of("a version that is a number", { domain: { version: 2 } }, null),
    of("no version", { domain: { version: undefined } }, "domain.version"),
    of("a salt", { domain: { salt: `0x${"00".repeat(32)}` } }, "domain.salt"),
    of("an unknown domain field", { domain: { extensions: [] } }, null),
    of("another chain in hex", { domain: { chainId: "0xa" } }, "domain.chainId"),
    of("the chain id of 2^256 and more", { domain: { chainId: String(MAX + 1n + BigInt(chainId)) } }, null),
    of("no chain", { domain: { chainId: undefined } }, "domain.chainId"),
    of("a contract with a wrong checksum", { domain: { verifyingContract: `0xA${TOKEN.slice(3)}` } }, null),
    other("a permit without a primary type", { primaryType: undefined }, null),
    other("a permit with the domain as primary type", { primaryType: "EIP712Domain" }, null),
    other("a permit under another name", { primaryType: "Permit2", types: { Permit2: fields } }, wrongType),
    other("a permit with its fields in another order", { types: { Permit: [...fields].reverse() } }, wrongType),
    other("a permit with a narrower value", { types: { Permit: narrowed(fields) } }, wrongType),
    other("a permit with a member that no type has", { message: { ...message, Value: "1" } }, null),
    other("a permit without its value", { message: { ...message, value: undefined } }, null),
    other("an authorisation of EIP-7702 as typed data", authorisation(chainId), "signer.messages.permit.type"),
  ];
}

const narrowed = (fields: readonly { name: string; type: string }[]) =>
  fields.map((each) => (each.name === "value" ? { ...each, type: "uint128" } : each));

const authorisation = (chainId: number) => ({
  types: { Authorization: ["chainId", "nonce"].map((name) => ({ name, type: "uint256" })) },
  primaryType: "Authorization",
  message: { chainId, nonce: 0 },
});

function trades(chainId: number): readonly Hostile[] {
  const types = {
    Trade: [
      { name: "items", type: "Item[]" },
      { name: "to", type: "address" },
    ],
    Item: [
      { name: "token", type: "address" },
      { name: "amount", type: "uint256" },
    ],
  };
  const trade = (items: unknown, to: string = SPENDER, change: object = {}) => ({
    typedData: { domain: { name: "Market", chainId }, types, primaryType: "Trade", message: { items, to }, ...change },
  });
  const item = (amount: unknown, token: string = TOKEN) => ({ token, amount });
  const place = (rule: string) => `signer.messages.trade.${rule}`;
  const renamed = { ...types, Item: [...types.Item].reverse() };
  return [
    {
      what: "a trade whose last item is above its bound",
      request: trade([item(1), item(11)]),
      rule: place("fields.items.amount"),
    },
    {
      what: "a trade of another token behind the first",
      request: trade([item(1), item(1, SPENDER)]),
      rule: place("fields.items.token"),
    },
    {
      what: "a trade whose items are too much together",
      request: trade([item(10), item(6)]),
      rule: place("amount.perSignature"),
    },
    { what: "a trade for another receiver", request: trade([item(1)], TOKEN), rule: place("fields.to") },
    { what: "a trade whose items are an object", request: trade({ 0: item(1), length: 1 }), rule: null },
    { what: "a trade whose items are lists", request: trade([[item(1)]]), rule: null },
    {
      what: "a trade whose struct is in another order",
      request: trade([item(1)], SPENDER, { types: renamed }),
      rule: "signer.messages.permit.type",
    },
    {
      what: "a trade of a fixed list",
      request: trade([item(1)], SPENDER, {
        types: { ...types, Trade: [{ name: "items", type: "Item[1]" }, types.Trade[1]] },
      }),
      rule: "signer.messages.permit.type",
    },
  ];
}

function texts(signer: Address, chainId: number): readonly Hostile[] {
  const greeting = (rest: string) => ({ message: `Log in to example.com: ${rest}` });
  const siwe = (parts: Readonly<Record<string, string>> = {}) => {
    const { domain = LOGIN.domain, uri = LOGIN.uri, chain = String(chainId), nonce = "8fd2a1bc" } = parts;
    return {
      message: `${domain} wants you to sign in with your Ethereum account:\n${signer}\n\n\nURI: ${uri}\nVersion: 1\nChain ID: ${chain}\nNonce: ${nonce}\nIssued At: 2026-11-18T12:00:00Z`,
    };
  };
  const hash = "ab".repeat(32);
  const text = "signer.messages.text";
  const login = (part: string) => `signer.messages.login.signIn${part}`;
  return [
    { what: "32 bytes", request: { message: { raw: `0x${hash}` } }, rule: "signer.messages.digest" },
    {
      what: "a text of 32 bytes under an allowed prefix",
      request: greeting("123456789"),
      rule: "signer.messages.digest",
    },
    { what: "a digest as text", request: { message: `0x${hash}` }, rule: "signer.messages.greeting.prefix" },
    {
      what: "the input of a digest of typed data",
      request: { message: { raw: `0x1901${hash}${hash}` } },
      rule: "signer.messages.prefix",
    },
    {
      what: "an authorisation of EIP-7702",
      request: { message: { raw: `0x05d70194${"22".repeat(20)}80` } },
      rule: "signer.messages.transaction",
    },
    ...[
      "\0",
      "\r",
      "\t",
      "\u001b[2J",
      "\u007f",
      "\u0085",
      "\u2028",
      "\u200b",
      "\u202e",
      "\u2066",
      "\ufeff",
      "\u00ad",
    ].map((mark) => ({
      what: `a greeting with ${JSON.stringify(mark)}, U+${mark.codePointAt(0)?.toString(16)}`,
      request: greeting(`1${mark}x`),
      rule: text,
    })),
    ...["\u3164", "\u115f", "\u034f", "\u180b", "\ufe0f", "\u{e0100}", "\u2800"].map((blank) => ({
      what: `a greeting with the invisible U+${blank.codePointAt(0)?.toString(16)}`,
      request: greeting(`1${blank}x`),
      rule: text,
    })),
    {
      what: "a greeting that is too long by newlines",
      request: greeting("\n".repeat(80)),
      rule: "signer.messages.greeting.maxLength",
    },
    {
      what: "a greeting in full-width letters",
      request: { message: "Ｌog in to example.com: 1" },
      rule: "signer.messages.greeting.prefix",
    },
    {
      what: "a sign-in behind the greeting",
      request: greeting(siwe().message),
      rule: "signer.messages.greeting.prefix",
    },
    { what: "a sign-in of another domain", request: siwe({ domain: "example.com.evil.com" }), rule: login(".domain") },
    {
      what: "a sign-in of a domain in other letters",
      request: siwe({ domain: "Example.com" }),
      rule: login(".domain"),
    },
    {
      what: "a sign-in of a domain behind a user's name",
      request: siwe({ domain: "example.com@evil.com" }),
      rule: login(".domain"),
    },
    {
      what: "a sign-in of a homoglyph",
      request: siwe({ domain: "exаmple.com" }),
      rule: "signer.messages.greeting.prefix",
    },
    {
      what: "a sign-in of another uri",
      request: siwe({ uri: "https://example.com/login/../admin" }),
      rule: login(".uri"),
    },
    { what: "a sign-in on another chain", request: siwe({ chain: String(chainId + 1) }), rule: login(".chainId") },
    {
      what: "a sign-in with a zero before its chain",
      request: siwe({ chain: `0${chainId}` }),
      rule: login(".chainId"),
    },
    {
      what: "a sign-in with a short nonce",
      request: siwe({ nonce: "1234567" }),
      rule: "signer.messages.greeting.prefix",
    },
    {
      what: "a sign-in with a nonce of signs",
      request: siwe({ nonce: "12345678-" }),
      rule: "signer.messages.greeting.prefix",
    },
  ];
}

export function hostileMessages(signer: Address, chainId: number): readonly Hostile[] {
  return [...permits(signer, chainId), ...trades(chainId), ...texts(signer, chainId)];
}
