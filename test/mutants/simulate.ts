import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleSimulation } from "../support/simulation/bundle.ts";
import { inProcess } from "../support/simulation/elsewhere.ts";
import type { Played } from "../support/simulation/play.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type Mutant, mutated } from "./mutant.ts";
import type { Result } from "./report.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Seeds of the first part. Each part is as large as all before it, because every process has to be compiled anew. */
const AT_FIRST = 10;
/** Time limit of a part, and of each of its seeds on top: with some mutants a simulation never ends. */
const PART_MS = 30_000;
const SEED_MS = 3_000;

/** Plays seeds with a mutant in place until one fails. */
export async function playMutant(mutant: Mutant, seeds: number): Promise<Result> {
  const startedAt = performance.now();
  const directory = await makeTemporaryDirectory();
  const { name, file } = mutant;
  const result = (verdict: Result["verdict"], detail: string): Result => {
    return { name, file, verdict, detail, ms: Math.round(performance.now() - startedAt) };
  };
  try {
    let applied = false;
    const bundle = await bundleSimulation(directory.path, {
      name: "mutant",
      transform(code: string, id: string) {
        if (id !== resolve(ROOT, file)) return null;
        applied = true;
        return mutated(mutant, code);
      },
    });
    if (!applied) return result("survived", "the simulation does not load this file");
    for (let first = 1, count = AT_FIRST; first <= seeds; first += count, count = first - 1) {
      const [failure] = await failuresOf(bundle, first, Math.min(count, seeds - first + 1));
      if (failure !== undefined) return result("found", failure);
    }
    return result("survived", `${seeds} seeds`);
  } finally {
    await directory.remove();
  }
}

/** Failures of a part of the seeds. A process that ends or hangs counts as one. */
async function failuresOf(bundle: string, first: number, count: number): Promise<readonly string[]> {
  const job = { kind: "seeds", first, count, untilFailure: true } as const;
  const played = inProcess<Played>(bundle, job, { timeoutMs: PART_MS + count * SEED_MS, isQuiet: true });
  return played.then(({ failures }) => failures).catch((error: Error) => [error.message]);
}
