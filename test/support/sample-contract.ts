import { parseAbi } from "viem";
import type { Hex } from "../../src/domain/lane.ts";

export const SAMPLE_ABI = parseAbi([
  "constructor(uint256 initial)",
  "function raise(uint256 value)",
  "function current() view returns (uint256)",
]);

/** Stores the argument behind the code in slot 0, then deploys the 0x40 bytes that follow at 0x1a. */
const INIT = "602080380360003960005160005560" + "40601a600039" + "60406000f3";

const RUNTIME =
  "60003560e01c" + // the selector
  "8063004f480314601e57" + // raise(uint256)
  "639fa6a6e314603457" + // current()
  "60006000fd" +
  "5b6004358060005410602f5760006000fd" + // raise: reverts unless stored < value
  "5b60005500" +
  "5b60005460005260206000f3";

/**
 * Holds a number that can only be raised: a `raise` that is fine alone reverts behind a higher one. Written by hand,
 * because there is no compiler here.
 */
export const SAMPLE_BYTECODE: Hex = `0x${INIT}${RUNTIME}`;
