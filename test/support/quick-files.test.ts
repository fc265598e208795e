import { join } from "node:path";
import { describe, expect, it } from "vitest";
import QuickFiles from "./quick-files.ts";
import { range } from "./transfers.ts";

function judge(durations: Readonly<Record<string, number>>): {
  readonly said: readonly string[];
  readonly failed: boolean;
} {
  const said: string[] = [];
  let failed = false;
  const reporter = new QuickFiles({
    say: (line) => said.push(line),
    fail: () => {
      failed = true;
    },
  });
  reporter.onTestRunEnd(
    Object.entries(durations).map(([path, duration]) => ({
      moduleId: join(process.cwd(), path),
      diagnostic: () => ({ duration }) as never,
    })),
  );
  return { said, failed };
}

/** This many files beside those that a test names, half a second each. */
const files = (count: number) => Object.fromEntries(range(count).map((n) => [`test/${n}.test.ts`, 500]));

describe("a run of the quick tests", () => {
  it("says nothing where every file took three seconds at most", () => {
    expect(judge({ ...files(120), "test/b.test.ts": 3_000 })).toEqual({ said: [], failed: false });
  });

  it("names slow files, the slowest first, and passes: the machine may have been busy", () => {
    const { said, failed } = judge({ ...files(120), "test/a.test.ts": 3_100, "test/b.test.ts": 9_000 });
    expect(said).toEqual([
      "slow: test/b.test.ts took 9.0 s, 3 s are wanted",
      "slow: test/a.test.ts took 3.1 s, 3 s are wanted",
    ]);
    expect(failed).toBe(false);
  });

  it("fails where one file takes more than 15 % of what all take, which no load of the machine explains", () => {
    expect(judge({ ...files(120), "test/a.test.ts": 11_000 })).toMatchObject({ failed: true });
  });

  it("of a few files fails for none: each has a large share", () => {
    expect(judge({ ...files(3), "test/a.test.ts": 11_000 })).toMatchObject({ failed: false });
  });
});
