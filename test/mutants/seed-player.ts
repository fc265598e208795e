/** A process that plays seeds: first without a mutant, then with each mutant that would make a difference. */
import { failureOf } from "../support/simulation/play.ts";
import { begin } from "./switchboard.ts";

/** One seed to play. */
export interface SeedJob {
  readonly seed: number;
  /** Numbers of the mutants to be played. */
  readonly mutants: readonly number[];
  /** True if the mutants are played although nobody knows whether they make a difference. */
  readonly isBlind: boolean;
}

export type Progress =
  | { readonly kind: "ready"; readonly atLoad: readonly number[] }
  | { readonly kind: "looked"; readonly failure: string | null; readonly differing: readonly number[] }
  | { readonly kind: "plays"; readonly mutant: number }
  | { readonly kind: "played"; readonly mutant: number; readonly failure: string | null }
  | { readonly kind: "done" };

const report = (progress: Progress) => void process.send?.(progress);

async function play({ seed, mutants, isBlind }: SeedJob): Promise<void> {
  const differing = isBlind ? mutants : await look(seed);
  for (const mutant of mutants.filter((each) => differing.includes(each))) {
    begin("playing", mutant);
    report({ kind: "plays", mutant });
    report({ kind: "played", mutant, failure: await failureOf({ seed }) });
  }
  report({ kind: "done" });
}

async function look(seed: number): Promise<readonly number[]> {
  begin("looking", null);
  const failure = await failureOf({ seed });
  const found = begin("playing", null);
  const differing = failure === null ? found : [];
  report({ kind: "looked", failure, differing });
  return differing;
}

process.on("disconnect", () => process.exit());
process.on("message", (order: SeedJob) => {
  // A simulation that waits for nothing any more ends the process, which otherwise waits for the next order.
  process.channel?.unref();
  void play(order).finally(() => process.channel?.ref());
});
report({ kind: "ready", atLoad: begin("playing", null) });
