import type { Address, JsonRpcAccount, Transport } from "viem";
import { type FencepostTransportOptions, fencepost } from "./fencepost-transport.ts";

export interface FencepostAccountOptions extends FencepostTransportOptions {
  /** A signer of Fencepost's. */
  readonly address: Address;
}

/** The address, and the way in which what it sends goes out. */
export type FencepostAccount = JsonRpcAccount & { readonly transport: Transport<"fencepost"> };

/**
 * An account whose transactions Fencepost sends, with the transport that does it. Both go to the wallet client: a local account
 * of viem signs by itself before anything is sent, and Fencepost's keys never leave its nodes.
 *
 * @example
 * const account = toFencepostAccount({ address, client, rpc: http(url) });
 * const wallet = createWalletClient({ account, chain, transport: account.transport });
 */
export function toFencepostAccount({ address, ...options }: FencepostAccountOptions): FencepostAccount {
  return { address, type: "json-rpc", transport: fencepost(options) };
}
