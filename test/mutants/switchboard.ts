/**
 * Switches of all mutants in one bundle of the simulation: at most one is on. While none is on, it can be recorded which
 * of them would make a difference, because a seed in which a mutant makes none need not be played with it.
 */
import { isDeepStrictEqual } from "node:util";

type Phase = "loading" | "looking" | "playing";

let active = Number(process.env.FENCEPOST_MUTANT ?? "-1");
let phase: Phase = "loading";
/** True while a mutant's expression is evaluated only for its value. */
let isTrying = false;
const differing = new Set<number>();

/** True if this mutant is on. For code of which only a run shows whether the mutant changes anything. */
export function isOn(id: number): boolean {
  if (phase !== "playing" && !isTrying) differing.add(id);
  return id === active;
}

/** The value of an expression without side effects, or of the mutant's. */
export function either<T>(id: number, original: () => T, mutant: () => T): T {
  if (phase === "loading") differing.add(id);
  if (id === active) return mutant();
  if (phase !== "looking" || isTrying || differing.has(id)) return original();
  let isSame = false;
  try {
    const value = original();
    isSame = isMade(mutant, value);
    return value;
  } finally {
    if (!isSame) differing.add(id);
  }
}

function isMade<T>(mutant: () => T, value: T): boolean {
  isTrying = true;
  try {
    return isDeepStrictEqual(mutant(), value);
  } catch {
    return false;
  } finally {
    isTrying = false;
  }
}

/** Begins a phase, with one mutant on or none, and returns the mutants that would have made a difference until now. */
export function begin(next: Exclude<Phase, "loading">, mutant: number | null): readonly number[] {
  const found = [...differing];
  differing.clear();
  phase = next;
  active = mutant ?? -1;
  return found;
}
