/** What an endpoint shows of a mined transaction beside what is kept of it. For people to look at: nothing is decided by it. */

import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { Payload } from "../domain/transaction.ts";

export interface OutcomeQuestion {
  readonly txHash: Hash;
  /** Where it reverted: what was called, to be called again on the state before its block. */
  readonly replay: { readonly call: Call; readonly onBlock: number } | null;
}

export interface ShownOutcome {
  readonly blockHash: Hash;
  /** The first of them. */
  readonly logs: readonly ShownLog[];
  /** How many logs there are besides. */
  readonly more: number;
  /** Null: it did not revert when called again, or could not be called again. */
  readonly revert: Revert | null;
}

export interface ShownLog {
  readonly address: Address;
  readonly topics: readonly Hash[];
  /** Its first bytes; `dataLength` says of how many. */
  readonly data: Hex;
  readonly dataLength: number;
  /** Where the first topic is that of an event that everybody knows, and the rest fits it. */
  readonly event: KnownEvent | null;
}

export interface KnownEvent {
  readonly name: string;
  /** Addresses and numbers alone: numbers as digits. */
  readonly args: readonly { readonly name: string; readonly value: string }[];
}

export interface Call extends Pick<Payload, "to" | "data" | "value" | "gas" | "accessList"> {
  readonly from: Address;
  /** What it costs where its receiver has no code, where that is known: then no estimate has a say. */
  readonly gasWithoutCode?: bigint;
  /** Whether its receiver has code is to be told, too. */
  readonly asksCode?: true;
}

export interface Revert {
  /** Error or panic name where the data tells, else null. */
  readonly name: string | null;
  /** Decoded reason in words, else null. */
  readonly message: string | null;
  readonly data: Hex;
}
