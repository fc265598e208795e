import { parseAbi } from "viem";
import type { Hex } from "../../src/domain/lane.ts";

export const SAMPLE_ABI = parseAbi([
  "constructor(uint256 initial)",
  "function raise(uint256 value)",
  "function current() view returns (uint256)",
]);

/** Stores the constructor argument, which follows the code, in slot 0; then deploys the 0x40 bytes at 0x1a. */
const INIT = "602080380360003960005160005560" + "40601a600039" + "60406000f3";

const RUNTIME =
  "60003560e01c" + // reads the selector of the called function
  "8063004f480314601e57" + // jumps to raise(uint256)
  "639fa6a6e314603457" + // jumps to current()
  "60006000fd" +
  "5b6004358060005410602f5760006000fd" + // raise: reverts unless the stored number is below the value
  "5b60005500" +
  "5b60005460005260206000f3";

/**
 * A contract with a number that can only be raised: a call of `raise` that would succeed alone reverts after a call
 * with a higher number. Written as bytecode, because the tests have no compiler.
 */
export const SAMPLE_BYTECODE: Hex = `0x${INIT}${RUNTIME}`;
