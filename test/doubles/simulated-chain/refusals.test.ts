import { describe, expect, it } from "vitest";
import { classifySubmission, namedGasCap } from "../../../src/adapters/evm/submit/submission-wordings.ts";
import { type Refusal, refusals } from "./refusals.ts";

const address = `0x${"ab".repeat(20)}` as const;

const all: Record<keyof typeof refusals, Refusal> = {
  alreadyKnown: refusals.alreadyKnown(),
  nonceTooLow: refusals.nonceTooLow(6, 5),
  nonceTooHigh: refusals.nonceTooHigh(address, 9, 5),
  replacementUnderpriced: refusals.replacementUnderpriced(),
  underpriced: refusals.underpriced(2n, 1n),
  feeCapUnderBaseFee: refusals.feeCapUnderBaseFee(address, 1n, 2n),
  insufficientFunds: refusals.insufficientFunds(1n, 2n),
  insufficientFundsBehindQueue: refusals.insufficientFundsBehindQueue(3n, 2n, 2n),
  intrinsicGasTooLow: refusals.intrinsicGasTooLow(1n, 21_000n),
  gasLimitTooHigh: refusals.gasLimitTooHigh(16_777_216n, 20_000_000n),
  exceedsBlockGasLimit: refusals.exceedsBlockGasLimit(),
  oversized: refusals.oversized(140_000, 131_072),
  tipAboveFeeCap: refusals.tipAboveFeeCap(),
  invalidSender: refusals.invalidSender(),
  notReplayProtected: refusals.notReplayProtected(),
  malformed: refusals.malformed("rlp: expected List"),
  unknownAccount: refusals.unknownAccount(),
  poolFull: refusals.poolFull(),
};

describe("a refusal of the simulated chain", () => {
  it.each(Object.entries(all))("has the same class over JSON-RPC as by direct call: %s", (_, refusal) => {
    const error = { code: -32000, message: refusal.message, data: undefined };
    expect(classifySubmission(error)).toBe(refusal.answer);
    expect(namedGasCap(error)).toBe(refusal.gasCap ?? null);
  });
});
