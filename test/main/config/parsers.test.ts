import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  apiKey,
  databaseUrl,
  mnemonic,
  originUrl,
  privateKey,
  rpcUrl,
  rpcUrls,
} from "../../../src/main/config/credentials.ts";
import {
  choice,
  duration,
  durationOrOff,
  flag,
  formatGwei,
  gwei,
  integer,
  list,
  type Parser,
  text,
} from "../../../src/main/config/parsers.ts";
import { SETTING_KEYS, SETTINGS } from "../../../src/main/config/schema.ts";

const value = <T>(parser: Parser<T>, raw: unknown): T | string => {
  const parsed = parser(raw);
  return "value" in parsed ? parsed.value : `! ${parsed.mistake}`;
};
const refused = (parser: Parser<unknown>, raw: unknown) => "mistake" in parser(raw);

describe("every parser of a setting", () => {
  it("returns a value or a one-line mistake for any input", () => {
    // Text of any code points, including lone surrogates. fast-check's unit "binary" would first build a table of all
    // of them, which takes a second.
    const anyText = fc.array(fc.nat(0x10ffff)).map((points) => String.fromCodePoint(...points));
    const raw = fc.oneof(fc.anything(), anyText, fc.webUrl(), fc.double(), fc.bigInt());
    fc.assert(
      fc.property(fc.constantFrom(...SETTING_KEYS), raw, (key, anything) => {
        const parsed = SETTINGS[key].parse(anything);
        if ("mistake" in parsed) expect(parsed.mistake).toMatch(/^\P{Cc}+$/u);
        else expect(parsed.value).not.toBeUndefined();
      }),
      { numRuns: 2000 },
    );
  });

  it("gives the same result for a file's value and a variable's text", () => {
    expect([value(integer(0, 9), 7), value(integer(0, 9), "7")]).toEqual([7, 7]);
    expect([value(flag, true), value(flag, "true"), value(flag, "false")]).toEqual([true, true, false]);
    expect(value(list(text), ["a", "b"])).toEqual(value(list(text), "a, b"));
  });
});

describe("number settings", () => {
  it.each([
    "-1",
    "1.5",
    "1e3",
    "0x10",
    "",
    " ",
    "NaN",
    "1_000",
    "99999999999999999999",
    null,
    undefined,
    [],
    {},
    1.5,
    -1,
    Number.NaN,
  ])("refuse %j as a whole number", (raw) => {
    expect(refused(integer(0, Number.MAX_SAFE_INTEGER), raw)).toBe(true);
  });

  it("are refused outside their limits", () => {
    expect(value(integer(1, 10), "0")).toBe("! is not a whole number from 1 to 10");
    expect(value(integer(1, 10), "10")).toBe(10);
  });

  it("parse gwei exactly", () => {
    expect(value(gwei, "1.5")).toBe(1_500_000_000n);
    expect(value(gwei, "0.000000001")).toBe(1n);
    expect(value(gwei, 50)).toBe(50_000_000_000n);
    for (const raw of ["0", "0.0000000001", "-1", "1,5", "", "1.", ".5", "1e9"]) expect(refused(gwei, raw)).toBe(true);
  });

  it("format gwei so that it parses to the same value", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10n ** 23n }), (wei) => {
        expect(value(gwei, formatGwei(wei))).toBe(wei);
      }),
    );
  });
});

describe("duration and choice settings", () => {
  it("report the expected format or the limits if a value is refused", () => {
    expect(value(duration(500), "10")).toBe("! is not a duration (use 10s, 250ms, 5m)");
    expect(value(duration(500), 10)).toBe("! is not a duration (use 10s, 250ms, 5m)");
    expect(value(duration(500), "100ms")).toBe("! is too short (at least 500ms)");
    expect(value(duration(0), 0)).toBe(0);
  });

  it("accept off only if the setting can be disabled", () => {
    expect(value(durationOrOff(100), "off")).toBeNull();
    expect(value(durationOrOff(100), "50ms")).toBe("! is too short (at least 100ms)");
    expect(value(durationOrOff(100), "of")).toBe("! is not a duration (use 10s, 250ms, 5m, or off)");
    expect(refused(duration(100), "off")).toBe(true);
  });

  it("name the allowed values if a value is not one of them", () => {
    expect(value(choice("a", "b"), "c")).toBe("! is not one of a, b");
  });
});

describe("list settings", () => {
  it("report the position of a mistake, counted from one", () => {
    expect(value(list(integer(0, 9)), "1,2,x")).toBe("! is wrong at place 3: is not a whole number from 0 to 9");
    expect(value(list(integer(0, 9)), [1, 1])).toBe("! is wrong at place 2: given before");
    expect(value(list(text), [])).toBe("! needs at least one item");
    expect(refused(list(text), "a,,b")).toBe(true);
  });
});

describe("credential settings", () => {
  const key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

  it("accept a private key with or without prefix, in any casing", () => {
    expect(value(privateKey, key)).toBe(`0x${key}`);
    expect(value(privateKey, ` 0x${key.toUpperCase()} `)).toBe(`0x${key}`);
  });

  it.each([
    ["", "empty"],
    [key.slice(1), "63 digits"],
    [`${key}0`, "65 digits"],
    [key.replace("a", "g"), "no hex"],
    ["0".repeat(64), "zero"],
    ["fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", "the order itself"],
    ["f".repeat(64), "above the order"],
  ])("refuse %j (%s)", (raw) => {
    expect(refused(privateKey, raw)).toBe(true);
  });

  it("refuse the same private key in two spellings", () => {
    expect(value(list(privateKey), `${key},0x${key.toUpperCase()}`)).toBe("! is wrong at place 2: given before");
  });

  it("check the number of words of a mnemonic", () => {
    const words = "test test test test test test test test test test test junk";
    expect(value(mnemonic, `  ${words.replaceAll(" ", "  ").toUpperCase()}`)).toBe(words);
    for (const raw of ["", "test", `${words} test`, words.replace("junk", "ju-nk")])
      expect(refused(mnemonic, raw)).toBe(true);
  });

  const secret = "x".repeat(22);

  it("accept an API key as text or as an object, with its scopes and limits", () => {
    expect(value(apiKey, `ci:${secret}`)).toEqual({ name: "ci", secret });
    expect(value(apiKey, `ci:${secret}:read+operate`)).toEqual({ name: "ci", secret, scopes: ["read", "operate"] });
    const signer = `0x${"Ab".repeat(20)}`;
    const said = { name: "ci", secret, scopes: ["submit"], signers: [signer], chains: [1, "10"] };
    expect(value(apiKey, said)).toEqual({ ...said, signers: [signer.toLowerCase()], chains: [1, 10] });
  });

  // protects [Attacks] src/main/config/credentials.ts
  it("refuse a malformed API key without quoting it", () => {
    for (const raw of ["", "ci", "ci:", `:${secret}`, `c i:${secret}`, `ci:sec ret${secret}`, `a:${secret}:read:d`]) {
      expect(refused(apiKey, raw)).toBe(true);
    }
    expect(value(apiKey, `ci:${secret.slice(1)}`)).toContain("! the secret of an API key has at least 22 characters");
    expect(value(apiKey, `ci:${secret}:read+write`)).toContain("! the scopes of an API key: is wrong at place 2");
    for (const more of [{ scopes: [] }, { signers: ["0x1"] }, { chains: [0] }, { colour: "red" }, { secret: 7 }]) {
      expect(refused(apiKey, { name: "ci", secret, ...more })).toBe(true);
    }
    expect(value(apiKey, { name: "ci", secret, signers: [secret] })).not.toContain(secret);
  });

  it("distinguish database, endpoint and node URLs", () => {
    expect(refused(databaseUrl, "postgres://u:p@h:5432/d")).toBe(false);
    expect(refused(databaseUrl, "postgresql:///d?host=/var/run/postgresql")).toBe(false);
    for (const raw of ["", "mysql://h/d", "localhost:5432", "http://h"]) expect(refused(databaseUrl, raw)).toBe(true);
    expect(refused(rpcUrl, "https://rpc.example/v3/token")).toBe(false);
    expect(value(rpcUrl, "wss://rpc.example")).toBe(
      "! is a WebSocket: name it in FENCEPOST_WS_URL, beside an http(s) URL",
    );
    for (const raw of ["", "rpc.example", "ftp://rpc.example"]) expect(refused(rpcUrl, raw)).toBe(true);
    expect(value(rpcUrl, { url: "https://a.example/k", send: "only" })).toBe("https://a.example/k#send=only");
    expect(value(rpcUrl, "https://a.example#send=yes")).toBe("https://a.example");
    expect(value(rpcUrls, "https://a.example,https://b.example#send=never")).toEqual([
      "https://a.example",
      "https://b.example#send=never",
    ]);
    expect(refused(rpcUrls, "https://a.example,https://a.example#send=only")).toBe(true);
    for (const raw of ["https://a.example#send=no", "https://a.example#only", { url: "https://a.example", sends: 1 }]) {
      expect(refused(rpcUrl, raw)).toBe(true);
    }
    expect(value(rpcUrls, ["https://a.example#send=never"])).toBe(
      "! has send: never for every endpoint: no transaction could be sent",
    );
    expect(value(originUrl, "http://node-1:3000/")).toBe("http://node-1:3000");
    for (const raw of ["node-1:3000", "http://u:p@node", "http://node/path", "http://node?x=1", ""]) {
      expect(refused(originUrl, raw)).toBe(true);
    }
  });
});
