/** Limits on the arguments of a call, in the words of its data (Solidity ABI: 32 bytes each). */
import type { Hex } from "../lane.ts";

/** Limits on one argument. Null: not limited in that way. */
export interface ArgumentBound {
  readonly name: string;
  /** Index of the word after the selector. */
  readonly word: number;
  /** Bits of the word that its type uses; higher bits must be zero. */
  readonly bits: number;
  /** The only allowed values, as numbers; an address is a number too. */
  readonly in: ReadonlySet<bigint> | null;
  readonly min: bigint | null;
  readonly max: bigint | null;
}

export type ArgumentBounds = readonly ArgumentBound[];

const SELECTOR_DIGITS = 2 + 8;
const WORD_DIGITS = 64;

/** The first argument that is not allowed, and the limit that it breaks. */
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

function isAllowed({ bits, in: allowed, min, max }: ArgumentBound, value: bigint) {
  if (value >> BigInt(bits) !== 0n) return false;
  return (allowed?.has(value) ?? true) && value >= (min ?? 0n) && (max === null || value <= max);
}
