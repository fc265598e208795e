/** Bounds on the arguments of a call, as they stand in its data (Solidity's ABI: a word of 32 bytes for each place). */
import type { Hex } from "../lane.ts";

/** Of one argument. Null: not bounded that way. */
export interface ArgumentBound {
  readonly name: string;
  /** Which word behind the selector it is. */
  readonly word: number;
  /** How many bits of the word its type uses; what stands above them must be nothing. */
  readonly bits: number;
  /** The only ones that are allowed, as numbers: an address is one, too. */
  readonly in: ReadonlySet<bigint> | null;
  readonly min: bigint | null;
  readonly max: bigint | null;
}

export type ArgumentBounds = readonly ArgumentBound[];

const SELECTOR_DIGITS = 2 + 8;
const WORD_DIGITS = 64;

/** The first that is not allowed, and in which way. */
export function outOfBounds(
  bounds: ArgumentBounds,
  data: Hex,
): { readonly name: string; readonly detail: string } | null {
  for (const bound of bounds) {
    const digits = data.slice(SELECTOR_DIGITS + bound.word * WORD_DIGITS).slice(0, WORD_DIGITS);
    const value = digits.length < WORD_DIGITS ? null : BigInt(`0x${digits}`);
    if (value !== null && isAllowed(bound, value)) continue;
    const said = value === null ? "nothing" : `${value}`;
    return { name: bound.name, detail: `does not allow the argument ${bound.name} to be ${said}` };
  }
  return null;
}

function isAllowed({ bits, in: allowed, min, max }: ArgumentBound, value: bigint): boolean {
  if (value >> BigInt(bits) !== 0n) return false;
  return (allowed?.has(value) ?? true) && value >= (min ?? 0n) && (max === null || value <= max);
}
