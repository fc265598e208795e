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

/** Durations of `count` test files of half a second each; a test adds the files that it is about. */
const files = (count: number) => Object.fromEntries(range(count).map((n) => [`test/${n}.test.ts`, 500]));

describe("the duration check of the quick tests", () => {
  it("reports nothing if every file took at most three seconds", () => {
    expect(judge({ ...files(120), "test/b.test.ts": 3_000 })).toEqual({ said: [], failed: false });
  });

  it("lists slow files, but does not fail", () => {
    const { said, failed } = judge({ ...files(120), "test/a.test.ts": 3_100, "test/b.test.ts": 9_000 });
    expect(said).toEqual([
      "slow: test/b.test.ts took 9.0 s, 3 s are wanted",
      "slow: test/a.test.ts took 3.1 s, 3 s are wanted",
    ]);
    expect(failed).toBe(false);
  });

  it("fails if one file takes more than 15 % of the total, even on a busy machine", () => {
    expect(judge({ ...files(120), "test/a.test.ts": 11_000 })).toMatchObject({ failed: true });
  });

  it("does not fail for a run of only a few files, because each has a large share", () => {
    expect(judge({ ...files(3), "test/a.test.ts": 11_000 })).toMatchObject({ failed: false });
  });
});
