/**
 * Facts about a mined transaction that are not stored, as one endpoint shows them. For display only: nothing is decided
 * by it.
 */
import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { Payload } from "../domain/transaction/transaction.ts";

export interface OutcomeQuestion {
  readonly txHash: Hash;
  /** Set if it reverted: the call, to be repeated on the state before its block. */
  readonly replay: { readonly call: Call; readonly onBlock: number } | null;
}

export interface ShownOutcome {
  readonly blockHash: Hash;
  /** The first logs. */
  readonly logs: readonly ShownLog[];
  /** Number of further logs. */
  readonly more: number;
  /** Null if the repeated call did not revert, or could not be made. */
  readonly revert: Revert | null;
}

export interface ShownLog {
  readonly address: Address;
  readonly topics: readonly Hash[];
  /** The first bytes; `dataLength` is the full length. */
  readonly data: Hex;
  readonly dataLength: number;
  /** Set if the first topic is that of a well-known event and the rest matches its layout. */
  readonly event: KnownEvent | null;
}

export interface KnownEvent {
  readonly name: string;
  /** Addresses, and numbers as digits. */
  readonly args: readonly { readonly name: string; readonly value: string }[];
}

export interface Call extends Pick<Payload, "to" | "data" | "value" | "gas" | "accessList"> {
  readonly from: Address;
  /** Gas for a receiver without code, if known. Then no estimate is needed. */
  readonly gasWithoutCode?: bigint;
  /** Ask also whether the receiver has code. */
  readonly asksCode?: true;
}

export interface Revert {
  /** Name of the error or panic, if the data shows it. */
  readonly name: string | null;
  /** Decoded reason, if there is one. */
  readonly message: string | null;
  readonly data: Hex;
}
