import type { Address, Hex } from "viem";

/** The key of the plain app, and the address that the node signs for. */
export const key = process.env.KEY as Hex;
export const signer = process.env.SIGNER as Address;
export const rpcUrl = process.env.RPC_URL ?? "http://127.0.0.1:8545";
export const url = process.env.NODE_URL ?? "http://127.0.0.1:3000";

const to: Address = "0x00000000000000000000000000000000000000AA";
export const payments = Array.from({ length: 10 }, () => ({ to, value: 1n }));
