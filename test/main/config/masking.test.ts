import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMask } from "../../../src/domain/text/mask.ts";
import { isOwnWord } from "../../../src/domain/text/own-words.ts";
import { effectiveValues } from "../../../src/main/config/effective.ts";
import { configFrom } from "../../../src/main/config/load.ts";
import {
  maskDatabaseUrl,
  maskRpcUrl,
  secretsOfDatabaseUrl,
  secretsOfRpcUrl,
} from "../../../src/main/config/masking.ts";
import { SETTING_KEYS, SETTINGS } from "../../../src/main/config/schema.ts";
import { unmaskedSecrets } from "../../../src/main/config/secrets.ts";

describe("secrets that cannot be masked", () => {
  it("include every word that is part of a setting's name", () => {
    for (const key of SETTING_KEYS) {
      const { variable } = SETTINGS[key];
      expect([variable, isOwnWord(variable)]).toEqual([variable, true]);
    }
  });

  it.each([
    ["the product's name", "fencepost"],
    ["a part of a setting's name", "api_keys"],
    ["five characters", "abc12"],
    // protects [Attacks] src/domain/text/own-words.ts, src/domain/text/mask.ts, src/main/config/secrets.ts
  ])("cause one warning at start with the name of the setting: %s", (_, password) => {
    const variables = { FENCEPOST_DATABASE_URL: `postgres://app:${password}@db/app` };
    const { resolution } = configFrom({ command: "dev", variables, file: null, flags: {} }, "n");
    expect(unmaskedSecrets(resolution)).toEqual([
      expect.stringMatching(
        /^FENCEPOST_DATABASE_URL: a secret in it is an ordinary word of Fencepost's texts, or shorter/,
      ),
    ]);
    expect(unmaskedSecrets(resolution).join().replace("FENCEPOST_DATABASE_URL", "")).not.toContain(password);
  });

  it("do not include ordinary secrets", () => {
    const variables = {
      FENCEPOST_DATABASE_URL: "postgres://app:hunter2@db/app",
      FENCEPOST_API_KEYS: "ci:s3cret-of-the-ci-machine",
    };
    const { resolution } = configFrom({ command: "dev", variables, file: null, flags: {} }, "n");
    expect(unmaskedSecrets(resolution)).toEqual([]);
  });
});

describe("masked URLs in messages", () => {
  it.each([
    ["postgres://app:hunter2@db:5432/orders", "postgres://app:***@db:5432/orders"],
    ["postgres://app@db/orders", "postgres://app@db/orders"],
    ["postgresql:///d?host=/run/pg&sslmode=require", "postgresql:///d?host=/run/pg&sslmode=require"],
    ["postgres://db/d?user=app&password=hunter2", "postgres://db/d?user=app&password=***"],
    ["postgres://a:p@ss@db/d", "postgres://a:***@db/d"],
    ["no url", "***"],
  ])("hide the password of the database URL %s", (url, masked) => {
    expect(maskDatabaseUrl(url)).toBe(masked);
  });

  it.each([
    ["http://127.0.0.1:8545", "http://127.0.0.1:8545/"],
    ["https://mainnet.example/v3/0123456789abcdef0123456789abcdef", "https://mainnet.example/v3/***"],
    ["https://user:pass@rpc.example/eth", "https://***@rpc.example/eth"],
    ["https://token@rpc.example/eth", "https://***@rpc.example/eth"],
    ["https://rpc.example/eth?apikey=abc&x=1", "https://rpc.example/eth?apikey=***&x=***"],
    ["no url", "***"],
  ])("hide the secrets of the endpoint URL %s", (url, masked) => {
    expect(maskRpcUrl(url)).toBe(masked);
  });

  it("have their secrets listed in every spelling that a message may quote", () => {
    expect(secretsOfDatabaseUrl("postgres://app:p%40ss|word@db/d")).toEqual([
      "p%40ss%7Cword",
      "p@ss|word",
      "p%40ss|word",
    ]);
    expect(secretsOfRpcUrl("https://u:pw@h/v3/0123456789abcdef0?k=v")).toEqual(["u", "pw", "0123456789abcdef0", "v"]);
    expect(secretsOfDatabaseUrl("postgres://app@db/a_rather_long_database_name")).toEqual([]);
    expect([...secretsOfDatabaseUrl("no url"), ...secretsOfRpcUrl("no url")]).toEqual([]);
  });
});

const hex64 = fc.stringMatching(/^[1-9a-e][0-9a-f]{63}$/);
const word = fc.stringMatching(/^[a-z]{8}$/);
/**
 * A random secret. None of its letters occurs in the surrounding fixed text, so finding a piece of it means that the
 * secret leaked.
 */
const token = fc.stringMatching(/^[QXZ0-9]{16,40}$/);

describe("a configured secret is never shown in plain text", () => {
  const secrets = fc.record({
    password: token,
    keys: fc.uniqueArray(hex64, { minLength: 1, maxLength: 3 }),
    words: fc.array(word, { minLength: 12, maxLength: 12 }),
    apiSecret: fc.stringMatching(/^[QXZ0-9]{22,40}$/),
    rpcToken: token,
    rpcPassword: token,
    query: token,
  });

  it("by fencepost config or by the log", () => {
    fc.assert(
      fc.property(secrets, ({ password, keys, words, apiSecret, rpcToken, rpcPassword, query }) => {
        const variables = {
          FENCEPOST_DATABASE_URL: `postgres://app:${password}@db/orders`,
          FENCEPOST_PRIVATE_KEYS: keys.join(","),
          FENCEPOST_MNEMONIC: words.join(" "),
          FENCEPOST_API_KEYS: `ci:${apiSecret}`,
        };
        const rpc = `https://user:${rpcPassword}@rpc.example/v3/${rpcToken}?key=${query}`;
        const file = { name: "f", content: { chains: [{ rpc }] } };
        const { config, resolution } = configFrom({ command: "start", variables, flags: {}, file }, "n");
        const shown = JSON.stringify(effectiveValues(resolution));
        const all = [password, ...keys, words.join(" "), apiSecret, rpcToken, rpcPassword, query];
        for (const secret of all) expect(shown).not.toContain(secret);
        for (const key of keys) expect(shown).not.toContain(key.slice(0, 12));

        const masked = createMask(config.secrets)(JSON.stringify([variables, rpc]));
        for (const secret of all) expect(masked).not.toContain(secret);
      }),
    );
  });

  it("by an error message about its setting", () => {
    const broken = fc.record({ secret: token, slip: fc.constantFrom("!", "'", "@", " ", "x:") });
    fc.assert(
      fc.property(broken, ({ secret, slip }) => {
        const value = `${slip}${secret}`;
        const variables = {
          FENCEPOST_DATABASE_URL: value,
          FENCEPOST_RPC_URL: value,
          FENCEPOST_PRIVATE_KEYS: value,
          FENCEPOST_MNEMONIC: value,
          FENCEPOST_API_KEYS: `:${value}`,
          FENCEPOST_ADVERTISE_URL: `http://u:${secret}@h`,
        };
        let message = "";
        try {
          configFrom({ command: "start", variables, flags: {}, file: null }, "n");
        } catch (error) {
          message = String(error);
        }
        expect(message.split("\n")).toHaveLength(6);
        expect(message).not.toContain(secret);
      }),
    );
  });
});
