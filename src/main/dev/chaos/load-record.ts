/** What callers and operators of a campaign were promised, to be checked at the end. */
import type { Address, Hex } from "../../../domain/lane.ts";

/** A request that was answered with 2xx. */
export interface Promised {
  readonly txId: string;
  readonly signer: Address;
  readonly requestId: string | null;
}

/** A time in which a node, or every node (null), may send nothing of a signer (null: of any signer). */
export interface StopRecord {
  readonly what: string;
  readonly signer: Address | null;
  readonly node: string | null;
  readonly fromMs: number;
  untilMs: number;
}

/** A message that was answered with a signature. */
export interface SignedRecord {
  readonly signer: Address;
  readonly requestId: string;
  readonly message: string;
  readonly signature: Hex;
  readonly node: string;
  readonly askedMs: number;
  readonly atMs: number;
}

export interface LoadRecord {
  readonly signed: readonly SignedRecord[];
  readonly promised: readonly Promised[];
  readonly stops: readonly StopRecord[];
  /** Answers that were definite refusals, by code. */
  readonly refused: ReadonlyMap<string, number>;
  /** Results of operators' actions, counted by action and error code. */
  readonly orders: ReadonlyMap<string, number>;
}
