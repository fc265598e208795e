import { describe, expect, it } from "vitest";
import { bannedGlobals } from "./rules/globals.ts";
import { parseSource, readCode } from "./tree.ts";

/**
 * Modules that may use time, randomness, environment and output directly. The development chain is a separate program,
 * so it reads its arguments and signals.
 */
const AT_HOME = /^src\/(adapters\/system|main(?!\/dev\/embedded)|main\/dev\/embedded\/chain\/dev-chain-main\.ts$)\/?/;
/** Dashboard code runs in a browser, where there is no clock port, so it may use time directly. */
const PAGE = "src/adapters/dashboard/public/";
/**
 * The SDK runs in the caller's process and has no ports, so its file deadline.ts, and no other file of it, may use time
 * and randomness.
 */
const CLIENT_WAITS = ["setTimeout", "performance", "Math.random", "crypto.randomUUID"].map(
  (name) => `src/client/deadline.ts: ${name}`,
);
/**
 * Wallet libraries run in the caller's process too, so these files may use time and randomness. They also generate a
 * request id if the caller gave none.
 */
const WALLET_WAITS = [
  "src/wallets/patience.ts: setTimeout",
  "src/wallets/patience.ts: performance",
  "src/wallets/request-scope.ts: crypto.randomUUID",
];

describe("globals for time, randomness, environment and output", () => {
  it("are used only in adapters/system and main", () => {
    const elsewhere = readCode("src").filter(({ path }) => !AT_HOME.test(path) && !path.startsWith(PAGE));
    const uses = elsewhere.flatMap(bannedGlobals);
    const allowed = [...CLIENT_WAITS, ...WALLET_WAITS];
    expect(uses.filter((use) => !allowed.includes(use.replace(/:\d+:/, ":")))).toEqual([]);
  });

  it("are found in adapters/system by the check", () => {
    const uses = readCode("src/adapters/system").flatMap(bannedGlobals).join("\n");
    for (const name of ["performance", "new Date()", "setTimeout", "Math.random", "process.env"]) {
      expect(uses).toContain(name);
    }
  });
});

describe("the check of globals", () => {
  it.each([
    ["Date.now();"],
    ["const at = new Date();"],
    ["const at = Date();"],
    ["setTimeout(f, 1);"],
    ["globalThis.setTimeout(f, 1);"],
    ["const wait = setInterval;"],
    ["const f = { setImmediate };"],
    ["Math.random();"],
    [`process.env["HOME"];`],
    ["const { env } = process;"],
    ["process.on('exit', f);"],
    ["console.log(1);"],
    ["performance.now();"],
    ["AbortSignal.timeout(5);"],
    [`import { setTimeout as sleep } from "node:timers/promises";`],
    [`import process from "node:process";`],
    ["const x = (setTimeout as unknown) as Clock;"],
  ])("refuses the banned global in %s", (text) => {
    expect(bannedGlobals(parseSource("src/domain/a.ts", text))).not.toEqual([]);
  });

  it.each([
    ["new Date(0); new Date(row.at);"],
    ["clock.setTimeout(f, 1);"],
    ["const o = { console: 1, setTimeout() {} };"],
    ["type Timer = ReturnType<typeof setTimeout>;"],
    ["process.platform; process.kill(pid, 0);"],
    [`const text = "Date.now() console.log"; // Math.random()`],
    ["clearTimeout(timer);"],
  ])("finds no banned global in %s", (text) => {
    expect(bannedGlobals(parseSource("src/domain/a.ts", text))).toEqual([]);
  });
});
