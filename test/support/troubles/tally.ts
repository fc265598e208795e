import type { Address, Hex } from "../../../src/domain/lane.ts";
import type { DevChain } from "../../../src/main/dev/embedded/start-chain.ts";

/** The address of the counting contract. */
export const TALLY: Address = `0x${"7a".repeat(20)}`;

/**
 * A contract that is called with a number and counts the calls in the storage slot of that number. It reverts while its
 * last slot, the gate, is shut. The test reads the counts from the chain's state, independently of Fencepost. Written
 * as bytecode, because the tests have no compiler.
 */
const RUNTIME: Hex = `0x${[
  "5f1954601057", // if the gate is shut, jumps to the end
  "5f35", // reads the number from the calldata
  "8054600101905500", // adds one to the count of that number
  "5b5f5ffd",
].join("")}`;

const GATE: Hex = `0x${"ff".repeat(32)}`;

const word = (value: number): Hex => `0x${value.toString(16).padStart(64, "0")}`;

export async function placeTally(node: DevChain): Promise<void> {
  await node.rpc("hardhat_setCode", [TALLY, RUNTIME]);
}

export async function setGate(node: DevChain, gate: "open" | "shut"): Promise<void> {
  await node.rpc("hardhat_setStorageAt", [TALLY, GATE, word(gate === "shut" ? 1 : 0)]);
}

/** Calldata of a call to the counting contract, which counts the execution of this payload. */
export const payloadData = word;

export async function executions(node: DevChain, payload: number): Promise<number> {
  return Number(await node.rpc("eth_getStorageAt", [TALLY, word(payload), "latest"]));
}
