import { createHash } from "node:crypto";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLogger, type LoggerSettings } from "../../../src/adapters/system/logger.ts";
import { createMask } from "../../../src/domain/text/mask.ts";

function capture(settings: Partial<LoggerSettings> = {}) {
  const lines: string[] = [];
  const destination = { write: (text: string) => lines.push(text) };
  return {
    lines,
    log: createLogger({ level: "info", format: "json", destination, mask: createMask([]), ...settings }),
  };
}

describe("the logger", () => {
  it("writes one JSON object per line, with time, level and message", () => {
    const { log, lines } = capture();
    log.log("info", { txId: "t1", nonce: 7 }, "sign");
    expect(lines).toHaveLength(1);
    expect(lines[0]?.endsWith("\n")).toBe(true);
    const { time, ...rest } = JSON.parse(lines[0] ?? "");
    expect(rest).toEqual({ level: "info", txId: "t1", nonce: 7, msg: "sign" });
    expect(new Date(time).toISOString()).toBe(time);
  });

  it("respects its level, and reports whether a level is enabled", () => {
    const { log, lines } = capture({ level: "warn" });
    log.log("info", {}, "dropped");
    log.log("error", {}, "kept");
    expect(lines).toHaveLength(1);
    expect(log.enabled("info")).toBe(false);
    expect(log.enabled("warn")).toBe(true);
    expect(capture({ level: "silent" }).log.enabled("fatal")).toBe(false);
  });

  it("writes fields that are given as encoded JSON in the same form as other fields", () => {
    const { log, lines } = capture();
    log.logMembers("info", '"nonce":7,"txHash":null', 'say "when"');
    log.logMembers("debug", '"nonce":8', "dropped");
    const { time, ...rest } = JSON.parse(lines.join(""));
    expect(rest).toEqual({ level: "info", nonce: 7, txHash: null, msg: 'say "when"' });
    expect(new Date(time).toISOString()).toBe(time);
  });

  it("masks a configured secret anywhere in a line, in upper or lower case", () => {
    const secrets = ['p"a\\ss-word', "ABCDEF0123456789"];
    const { log, lines } = capture({ mask: createMask(secrets) });
    log.log(
      "error",
      { url: 'postgres://u:p"a\\ss-word@h/d', nested: { key: "abcdef0123456789" } },
      `bad ${secrets[0]}`,
    );
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      url: "postgres://u:***@h/d",
      nested: { key: "***" },
      msg: "bad ***",
    });
  });

  // protects [Many lanes] src/domain/text/mask.ts
  it("masks private keys anywhere in a line, also beside and inside other secrets", () => {
    const [one, two] = ["1a".repeat(32), "2b".repeat(32)];
    const mask = createMask([one, two, "a1a1a1a1", `https://rpc/${one}/token`]);
    expect(mask(`0x${one.toUpperCase()} and ${two}`)).toBe("0x*** and ***");
    expect(mask(`0xa9059cbb00${one}${two}77`)).toBe("0xa9059cbb00******77");
    expect(mask(`https://rpc/${one}/token`)).toBe("***");
    expect(mask(one.slice(1))).not.toContain("a1a1a1a1");
    const hash = "3c".repeat(32);
    expect(mask(`0x${hash}`)).toBe(`0x${hash}`);
  });

  // protects [Many lanes] src/domain/text/mask.ts
  it("masks ten thousand keys about as fast as one", () => {
    const keys = Array.from({ length: 10_000 }, (_, n) => createHash("sha256").update(`key ${n}`).digest("hex"));
    const line = JSON.stringify({ txHash: `0x${"4d".repeat(32)}`, msg: "a line as there are many" });
    const cost = (secrets: readonly string[]): number => {
      const before = process.cpuUsage();
      const mask = createMask(secrets);
      for (let n = 0; n < 2_000; n++) mask(`${line}${n}`);
      return process.cpuUsage(before).user;
    };
    cost(keys.slice(0, 1));
    expect(cost(keys)).toBeLessThan(10 * cost(keys.slice(0, 1)) + 100_000);
  });

  it("never writes a secret, and every line stays valid JSON", () => {
    const secret = fc.stringMatching(/^[A-Z0-9!-~]{8,40}$/);
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 4 }),
        fc.string(),
        fc.string(),
        (secrets, before, after) => {
          const { log, lines } = capture({ mask: createMask(secrets) });
          log.log("info", { text: `:${secrets.join("|")}:` }, `${before} ${secrets.join(" ")} ${after}`);
          const line = lines[0] ?? "";
          const { text, msg } = JSON.parse(line) as { text: string; msg: string };
          for (const one of secrets) {
            expect(text).not.toContain(one);
            expect(msg).not.toContain(one);
          }
        },
      ),
    );
  });

  it("has every line on disk after a flush", async () => {
    const directory = mkdtempSync(join(tmpdir(), "fencepost-log-"));
    const file = join(directory, "log");
    const descriptor = openSync(file, "w");
    const { log } = capture({ destination: descriptor });
    for (let i = 0; i < 3000; i++) {
      if (i % 2 === 0) log.log("info", { i, word: "Zaun…" }, "line");
      else log.logMembers("info", `"i":${i},"word":"Zaun…"`, "line");
    }
    await log.flush();
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).i)).toEqual(Array.from({ length: 3000 }, (_, i) => i));
    expect(new Set(lines.map((line) => JSON.parse(line).word))).toEqual(new Set(["Zaun…"]));
    closeSync(descriptor);
    rmSync(directory, { recursive: true });
  });

  it("does not mask short secrets, because that would garble the log", () => {
    expect(createMask(["key", ""])("the key is in the monkey")).toBe("the key is in the monkey");
  });
});

describe("log lines in the readable format", () => {
  const plain = (text = "") => stripVTControlCharacters(text);

  it("show time, level, message and fields on one line", () => {
    const { log, lines } = capture({ format: "readable" });
    log.log(
      "warn",
      { txHash: `0x${"ab".repeat(32)}`, nonce: 3, requestId: null, detail: "two\nlines\u001b[2J" },
      "mine",
    );
    expect(lines).toHaveLength(1);
    expect(plain(lines[0])).toMatch(
      /^\d\d:\d\d:\d\d warn {2}mine txHash=0xababab…abab nonce=3 detail=two lines \[2J\n$/,
    );
  });

  it("are the same without colours if colours are off", () => {
    const [bright, bare] = [true, false].map((colours) => {
      const { log, lines } = capture({ format: "readable", colours });
      log.log("warn", { nonce: 3 }, "mine");
      return lines[0] ?? "";
    });
    expect(bare).not.toContain("\u001b");
    expect(bright).toContain("\u001b[33m");
    expect(bare?.slice(8)).toBe(plain(bright).slice(8));
  });

  it("show fields given as encoded JSON in the same form as other fields", () => {
    const { log, lines } = capture({ format: "readable" });
    log.logMembers("info", '"nonce":3,"subState":null', "mine");
    expect(plain(lines[0])).toMatch(/^\d\d:\d\d:\d\d info {2}mine nonce=3\n$/);
  });

  it("have their secrets masked too", () => {
    const { log, lines } = capture({ format: "readable", mask: createMask(["hunter2hunter2"]) });
    log.log("error", { detail: "x hunter2hunter2 y" }, "hunter2hunter2");
    expect(plain(lines[0])).toContain("*** detail=x *** y");
  });

  it("are still written if masking broke an escape sequence", () => {
    const { log, lines } = capture({ format: "readable", mask: createMask(["nnnnnn"]) });
    log.log("info", { detail: "\nnnnnnn" }, "odd");
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("nnnnnn");
  });
});
