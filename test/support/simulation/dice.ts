import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";

/** The random numbers of a simulation: the same seed gives the same numbers. */
export class Dice {
  private readonly random: () => number;

  constructor(seed: number) {
    this.random = createSeededEntropy(seed).random;
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  /** A random integer from `least` to `most`, both included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.random() * (most - least + 1));
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error("there is nothing to pick from");
    return list[this.int(0, list.length - 1)] as T;
  }

  weighted<T>(choices: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.random() * choices.reduce((sum, [weight]) => sum + weight, 0);
    const found = choices.find(([weight]) => {
      left -= weight;
      return left < 0;
    });
    return (found ?? (choices[0] as readonly [number, T]))[1];
  }
}
