import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

/** Time in ms that one file of the quick tests may take on two idle cores. */
const WANTED_MS = 3_000;
/**
 * Largest share of the total time that one file may take; above it the run fails. A share does not depend on the
 * machine's load, which slows all files alike. Three seconds are normally a twenty-fifth of the total.
 */
const LARGEST_SHARE = 0.15;
/** Smallest number of files for which shares are checked; with fewer files each has a large share. */
const WHOLE_RUN = 100;

interface Ports {
  say(line: string): void;
  fail(): void;
}

const OF_THE_PROCESS: Ports = {
  say: (line) => void process.stderr.write(`${line}\n`),
  fail: () => {
    process.exitCode = 1;
  },
};

/**
 * After `npm run test:unit`, reports each file whose tests took too long: they wait in real time, or do more than they
 * need. Fails the run if one file takes a large share of the total time. The time for loading modules is not counted,
 * because files share it.
 */
export default class QuickFiles implements Reporter {
  private readonly ports: Ports;

  constructor(ports: Partial<Ports> = {}) {
    this.ports = { ...OF_THE_PROCESS, ...ports };
  }

  onTestRunEnd(modules: readonly Pick<TestModule, "moduleId" | "diagnostic">[]): void {
    const slow = modules
      .map((module) => ({ path: relative(process.cwd(), module.moduleId), ms: module.diagnostic().duration }))
      .filter(({ ms }) => ms > WANTED_MS)
      .sort((a, b) => b.ms - a.ms);
    for (const { path, ms } of slow) {
      this.ports.say(`slow: ${path} took ${(ms / 1_000).toFixed(1)} s, ${WANTED_MS / 1_000} s are wanted`);
    }
    const allMs = modules.reduce((sum, module) => sum + module.diagnostic().duration, 0);
    if (modules.length >= WHOLE_RUN && slow.some(({ ms }) => ms > LARGEST_SHARE * allMs)) this.ports.fail();
  }
}
