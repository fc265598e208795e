import type { Address } from "../domain/lane.ts";

/** An ABI by which calls, logs and errors of contracts are shown to people. */
export interface NamedAbi {
  readonly name: string;
  /** Contracts that it describes; absent: every contract that no other entry names. */
  readonly addresses?: readonly Address[];
  readonly abi: readonly unknown[];
}

/** All ABIs, the same on every node. */
export interface AbiDocument {
  readonly items: readonly NamedAbi[];
  /** When and by whom the document was stored; null: none was. */
  readonly changedAt: Date | null;
  readonly changedBy: string | null;
}

export interface AbiStore {
  abis(): Promise<AbiDocument>;
  /** Replaces all ABIs. */
  replaceAbis(items: readonly NamedAbi[], changedBy: string): Promise<AbiDocument>;
}
