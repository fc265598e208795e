import type { Hex } from "../../src/domain/lane.ts";

const word = (value: number | bigint) => value.toString(16).padStart(64, "0");
const byte = (value: number) => value.toString(16).padStart(2, "0");
const text = (value: string) => Buffer.from(value, "utf8").toString("hex");

/** The revert data of each contract, as Solidity encodes it. */
export const REVERT_DATA = {
  withReason: `08c379a0${word(0x20)}${word(8)}${text("no lunch").padEnd(64, "0")}`,
  withPanic: `4e487b71${word(0x11)}`,
  withCustomError: `deadbeef${word(42)}`,
  silently: "",
} as const;

/**
 * Code that copies the payload behind it to memory, and ends with `opcode` applied to that memory: REVERT (fd) in the
 * contract, RETURN (f3) in the code that deploys it.
 */
const copyAndEnd = (payload: string, opcode: "fd" | "f3") => {
  const size = byte(payload.length / 2);
  const prologueBytes = "0c";
  return `60${size}60${prologueBytes}60003960${size}6000${opcode}${payload}`;
};

/** Init code of a contract that reverts with `data` on every call. */
export function revertingInitCode(data: string): Hex {
  return `0x${copyAndEnd(copyAndEnd(data, "fd"), "f3")}`;
}
