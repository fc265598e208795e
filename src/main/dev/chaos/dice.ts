/** Random choices: the same seed gives the same ones. */
export class Dice {
  private readonly random: () => number;

  constructor(seed: number) {
    const next = sfc32(~seed);
    this.random = () => next() / 0x1_0000_0000;
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

/** Small Fast Counter (PractRand): 128 bits of state, passes BigCrush, and needs nothing but 32-bit additions. */
export function sfc32(seed: number): () => number {
  let a = seed | 0;
  let b = 0x9e3779b9 | 0;
  let c = 0x243f6a88 | 0;
  let count = 1;
  const next = () => {
    const sum = (((a + b) | 0) + count) | 0;
    count = (count + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 16; i++) next();
  return next;
}
