import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMask, maskOfShapes, maskTexts } from "../../../src/domain/text/mask.ts";

const HASH = "3c".repeat(32);

describe("the mask for secrets in texts", () => {
  it.each([
    ["postgres://app:p@ss@db/d", "postgres://app:***@db/d"],
    ["https://token@rpc.example/eth", "https://***@rpc.example/eth"],
    ["authorization: Bearer abcdefgh.ijkl, x", "authorization: Bearer ***, x"],
    ['{"authorization":"Basic dXNlcjpwYXNz"}', '{"authorization":"Basic ***"}'],
    ["Fencepost-Node 0123456789abcdef", "Fencepost-Node ***"],
    ["GET /eth?apiKey=abcdefgh&x=1", "GET /eth?apiKey=***&x=1"],
    ["host=db password=hunter2hunter2 x", "host=db password=*** x"],
    [`private key 0x${HASH}`, "private key 0x***"],
    [`{"privateKey":"${HASH}"}`, '{"privateKey":"***"}'],
    [`{\\"secret\\":\\"0x${HASH}\\"}`, '{\\"secret\\":\\"0x***\\"}'],
    [`keys: ["0x${HASH}"]`, 'keys: ["0x***"]'],
    // protects [Attacks] src/domain/text/mask.ts
  ])("recognises a secret by its shape: %s", (text, masked) => {
    expect(maskOfShapes(text)).toBe(masked);
    expect(createMask(["some other secret"])(text)).toBe(masked);
  });

  it.each([
    `0x${HASH}`,
    `"txHash":"0x${HASH}"`,
    `the key is not found for 0x${HASH}`,
    "nonce too low: next nonce 5, tx nonce 4",
    "somebody@example.com",
    "https://rpc.example/eth?x=1",
    // protects [Attacks] src/domain/text/mask.ts
  ])("leaves text without a secret unchanged: %s", (text) => {
    expect(createMask(["hunter2hunter2", "4d".repeat(32)])(text)).toBe(text);
  });

  it.each(["fencepost", "FENCEPOST", "signer", "API_KEYS", "transaction", "postgres", "not_leader", "action"])(
    // protects [Attacks] src/domain/text/own-words.ts, src/domain/text/mask.ts, src/main/config/secrets.ts
    "does not mask a word of Fencepost's own messages that was chosen as a secret: %s",
    (secret) => {
      const said = "fencepost: FENCEPOST_API_KEYS: is required; the signer of a transaction; NOT_LEADER; PostgreSQL";
      const mask = createMask([secret]);
      expect(mask(said)).toBe(said);
      expect(mask(`cannot reach postgres://app:${secret}@db/app`)).toBe("cannot reach postgres://app:***@db/app");
      expect(createMask([`${secret}-of-mine`])(`it is ${secret}-of-mine`)).toBe("it is ***");
    },
  );

  it("recognises a secret in its JSON and URL encodings", () => {
    const secret = 'p"a\\ss/wörd';
    const mask = createMask([secret]);
    for (const text of [
      secret,
      JSON.stringify(secret),
      JSON.stringify(JSON.stringify(secret)),
      encodeURIComponent(secret),
    ]) {
      expect(mask(`<${text}>`)).toMatch(/^<["\\]*\*\*\*["\\]*>$/);
    }
  });

  it("hides a secret in any encoding, in any text", () => {
    const secret = fc.string({ minLength: 8, maxLength: 40, unit: "grapheme" });
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (one, before, after) => {
        const mask = createMask([one]);
        expect(mask(`${before}${one}${after}`)).not.toContain(one);
        expect(mask(JSON.stringify({ text: `${before}|${one}|${after}` }))).not.toContain(
          JSON.stringify(one).slice(1, -1),
        );
      }),
    );
  });

  it("needs time proportional to the length of the text", () => {
    const mask = createMask(["hunter2hunter2"]);
    for (const text of [
      "key ".repeat(50_000),
      "://".repeat(50_000),
      "a".repeat(200_000),
      `http://${"a@".repeat(50_000)}`,
    ]) {
      const before = process.cpuUsage();
      mask(text);
      expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
    }
  });

  it("covers every text of an error object up to a depth limit", () => {
    const mask = createMask(["hunter2hunter2"]);
    const data = { a: ["hunter2hunter2", 1, null], data: "0x08c379a0", b: { c: true } };
    expect(maskTexts(mask, data)).toEqual({ a: ["***", 1, null], data: "0x08c379a0", b: { c: true } });
    let deep: unknown = "hunter2hunter2";
    for (let n = 0; n < 10_000; n++) deep = [deep];
    expect(JSON.stringify(maskTexts(mask, deep))).not.toContain("hunter2");
  });
});
