import { describe, expect, it } from "vitest";
import { ALONE } from "../support/alone.ts";
import { dishonestDoubles } from "./rules/doubles.ts";
import { dishonest, replaced } from "./rules/hygiene.ts";
import { countLines, parseSource, readCode } from "./tree.ts";

const tests = readCode("test");

/**
 * The only file that may poll on a timer. Polling is needed for changes outside the test process, which raise no event
 * inside it. All other tests use this file.
 */
const LOOKS_AGAIN = "test/support/wait-until.ts";
/**
 * Tests that may be skipped on a machine without a browser or PgBouncer; they then report the skip on standard error.
 */
const LOUD_SKIP =
  /^test\/adapters\/(dashboard\/(browser|blind|every-page|notices|approvals|operating|outcomes-and-messages|strip)|postgres\/pooled)\.test\.ts:\d+: skipIf$/;
/** Lower limit of test lines per source line. Raise it as tests grow; never lower it. */
const LEAST_TESTS_PER_SOURCE_LINE = 1;

describe("the test files", () => {
  it("skip and retry nothing, and wait for conditions instead of fixed times", () => {
    const suspect = tests.filter(({ path }) => path !== LOOKS_AGAIN);
    expect(suspect.flatMap(dishonest).filter((found) => !LOUD_SKIP.test(found))).toEqual([]);
  });

  it("do not change globals of a process that they share", () => {
    const shared = tests.filter(({ path }) => !ALONE.some((alone) => alone === path));
    expect(shared.flatMap(replaced)).toEqual([]);
  });

  it("have for every test double a contract suite that the real adapter passes too", () => {
    expect(dishonestDoubles(tests)).toEqual([]);
  });

  it("have more lines than the source", async ({ annotate }) => {
    const ratio = linesIn("test") / linesIn("src");
    await annotate(`tests : source = ${ratio.toFixed(2)}`);
    expect(ratio).toBeGreaterThanOrEqual(LEAST_TESTS_PER_SOURCE_LINE);
  });
});

describe("the check of test files", () => {
  it.each([
    [`it.skip("x", f);`],
    [`describe.only("x", f);`],
    [`test.concurrent.only("x", f);`],
    [`it.todo("x");`],
    [`it.fails("x", f);`],
    [`it.skipIf(slow)("x", f);`],
    [`describe.runIf(fast)("x", f);`],
    [`it("x", { retry: 3 }, f);`],
    [`it("x", (context) => context.skip());`],
    ["setTimeout(f, 500);"],
    ["await new Promise((resolve) => setTimeout(resolve, 1_000));"],
    ["setInterval(f, POLL_MS);"],
    ["await systemClock.sleep(50);"],
    [`import { setTimeout } from "node:timers/promises";`],
  ])("refuses skipped, retried or timed tests: %s", (text) => {
    expect(dishonest(parseSource("test/a.test.ts", text))).toHaveLength(1);
  });

  it.each([
    [`it("skips nothing", f);`],
    ["setTimeout(f, 0); setTimeout(f, delayMs);"],
    ["await world.clock.sleep(500);"],
    ["reader.skip(3); pages.only;"],
  ])("accepts code that only looks skipped or timed: %s", (text) => {
    expect(dishonest(parseSource("test/a.test.ts", text))).toEqual([]);
  });

  it.each([
    [`vi.mock("../src/a.ts", () => ({}));`],
    [`vi.stubGlobal("fetch", f);`],
    [`vi.stubEnv("A", "b");`],
    ["vi.useFakeTimers();"],
    [`process.env.A = "b";`],
    ["process.env = saved;"],
    ["delete process.env[name];"],
    ["Object.assign(process.env, variables);"],
  ])("refuses the changed global in %s, in a shared process", (text) => {
    expect(replaced(parseSource("test/a.test.ts", text))).toHaveLength(1);
  });

  it.each([
    ["const saved = { ...process.env };"],
    [`vi.fn(); vi.spyOn(store, "get");`],
    ["Object.assign({}, process.env);"],
    ["world.env = 1; delete world.env;"],
  ])("finds no changed global in %s", (text) => {
    expect(replaced(parseSource("test/a.test.ts", text))).toEqual([]);
  });

  const contract = parseSource("test/contracts/clock.contract.ts", "export function clockContract() {}");
  const double = parseSource("test/doubles/clock.ts", "export const clock = 1;");
  const runner = (path: string, more = "") => parseSource(path, `import "../contracts/clock.contract.ts"; ${more}`);
  const doubleRuns = runner("test/doubles/clock.test.ts", `import "./clock.ts";`);
  const adapterRuns = parseSource("test/adapters/system/clock.test.ts", `import "../../contracts/clock.contract.ts";`);

  it("requires that the double and the adapter both run the contract suite", () => {
    expect(dishonestDoubles([contract, double, doubleRuns, adapterRuns])).toEqual([]);
    expect(dishonestDoubles([contract, double, doubleRuns])).toEqual([
      "test/contracts/clock.contract.ts: run by nothing in test/adapters/",
    ]);
    expect(dishonestDoubles([contract, double, adapterRuns])).toHaveLength(2);
  });

  it("reports a double that no contract suite checks", () => {
    const lonely = parseSource("test/doubles/memory-queue/state.ts", "");
    expect(dishonestDoubles([contract, double, doubleRuns, adapterRuns, lonely])).toEqual([
      "test/doubles/memory-queue: runs no contract suite",
    ]);
  });
});

function linesIn(folder: string): number {
  return readCode(folder).reduce((sum, { text }) => sum + countLines(text), 0);
}
