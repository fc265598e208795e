import type { Address } from "./lane.ts";

/** An order to stop: nothing of a signer, or of any, is sent while it is in force. Creates are accepted and wait. */
export interface Kill {
  readonly killId: string;
  /** Null: everything. */
  readonly signer: Address | null;
  readonly actor: string;
  readonly reason: string;
}

/** Whether an order concerns a signer. */
export function concerns({ signer: killed }: Kill, signer: Address): boolean {
  return killed === null || killed === signer;
}
