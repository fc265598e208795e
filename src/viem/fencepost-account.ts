import type { Address, JsonRpcAccount, Transport } from "viem";
import { type FencepostTransportOptions, fencepost } from "./fencepost-transport.ts";

export interface FencepostAccountOptions extends FencepostTransportOptions {
  /** Address of a signer that Fencepost manages. */
  readonly address: Address;
}

/** A viem account: an address with the transport of its transactions. */
export type FencepostAccount = JsonRpcAccount & { readonly transport: Transport<"fencepost"> };

/**
 * An account whose transactions Fencepost sends, with its transport. Pass both to the wallet client: a local account of
 * viem would sign by itself, but Fencepost's keys never leave its nodes.
 *
 * @example
 * const account = toFencepostAccount({ address, client, rpc: http(url) });
 * const wallet = createWalletClient({ account, chain, transport: account.transport });
 */
export function toFencepostAccount({ address, ...options }: FencepostAccountOptions): FencepostAccount {
  return { address, type: "json-rpc", transport: fencepost(options) };
}
