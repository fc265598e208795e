import { PARTS, type Part, type Scenario } from "./simulate.ts";

/** Most steps of any scenario, as drawn by `simulate`. */
const MOST_STEPS = 50;

/**
 * Finds a smaller scenario of the same seed that fails too: first the fewest steps, then as few parts as possible, then
 * the fewest steps again. `fails` must give the same answer each time.
 */
export async function shrink(
  scenario: Scenario,
  fails: (smaller: Scenario) => Promise<boolean>,
): Promise<Required<Scenario>> {
  let { seed, most = MOST_STEPS, without = [] }: Scenario = scenario;
  const shorten = async () => {
    // Whether a scenario fails does not grow with its steps, so every number is tried.
    for (let steps = 1; steps < most; steps++) {
      if (!(await fails({ seed, most: steps, without }))) continue;
      most = steps;
      return;
    }
  };
  await shorten();
  const before = without;
  for (const part of PARTS.filter((each) => !before.includes(each))) {
    const fewer: readonly Part[] = [...without, part];
    if (await fails({ seed, most, without: fewer })) without = fewer;
  }
  await shorten();
  return { seed, most, without };
}
