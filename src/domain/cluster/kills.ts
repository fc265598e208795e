import type { Address } from "../lane.ts";

/** A kill: while it is in force, nothing of one signer, or of any signer, is sent. Creates are accepted and wait. */
export interface Kill {
  readonly killId: string;
  /** Signer that the kill stops; null for every signer. */
  readonly signer: Address | null;
  readonly actor: string;
  readonly reason: string;
}

/** True if a kill applies to a signer. */
export function concerns({ signer: killed }: Kill, signer: Address): boolean {
  return killed === null || killed === signer;
}
