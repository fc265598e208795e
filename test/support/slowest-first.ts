import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const BROWSER = "test/adapters/dashboard/browser.test.ts";

/** Test files that take almost ten seconds or more. */
const SLOW = [
  "test/main/dev/embedded/postgres-recovery.test.ts",
  "test/main/dev/embedded/postgres-places.test.ts",
  "test/integration/crash.test.ts",
  "test/integration/command-line.test.ts",
  "test/integration/shutdown.test.ts",
  "test/cluster/paused-owner.test.ts",
  "test/integration/nonces.test.ts",
  "test/integration/burst.test.ts",
  "test/integration/database.test.ts",
  "test/integration/operations.test.ts",
  "test/adapters/postgres/contracts/",
  "test/cluster/",
  "test/integration/",
  "test/adapters/postgres/pooled.test.ts",
  "test/adapters/postgres/reads.test.ts",
  "test/adapters/postgres/session/session-lock.test.ts",
  BROWSER,
  "test/adapters/evm/settle-receipts.test.ts",
];

/**
 * Runs long files first, so that none is left for the end, when other processors are idle. Otherwise in vitest's order.
 */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ranks = new Map(files.map((file) => [file, rankOf(relative(this.ctx.config.root, file.moduleId))]));
    const rank = (file: TestSpecification) => ranks.get(file) ?? SLOW.length;
    const sorted = await super.sort(files);
    // Simulations go first: they only compute, so one left for the end would keep one processor busy and the others
    // idle. Then the browser's tests, which would be last among the tests in memory.
    const turnOf = ({ name }: TestSpecification["project"]) => (name === "simulation" ? 0 : 1);
    const projects = [...new Set(sorted.map(({ project }) => project))].sort((a, b) => turnOf(a) - turnOf(b));
    const grouped = projects.flatMap((project) =>
      sorted.filter((file) => file.project === project).sort((a, b) => rank(a) - rank(b)),
    );
    const isEarly = (file: TestSpecification) =>
      file.project.name === "simulation" || rank(file) === SLOW.indexOf(BROWSER);
    return [...grouped.filter(isEarly), ...grouped.filter((file) => !isEarly(file))];
  }
}

function rankOf(path: string): number {
  const found = SLOW.findIndex((slow) => path.startsWith(slow));
  return found === -1 ? SLOW.length : found;
}
