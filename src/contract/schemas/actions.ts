import { type Static, Type } from "typebox";
import { AllowNoCode, FeeType, Payload } from "./create.ts";
import { ChainId, HexInput, Quantity } from "./scalars.ts";
import { closed, described, object, oneOf, optional, record, truth } from "./shapes.ts";

/**
 * Schemas of operators' actions and their fields. Each action validates its own body in depth; these only describe it.
 */

const reason = Type.String({
  minLength: 1,
  maxLength: 1_000,
  description: "Why; kept in the history.",
  examples: ["wrong recipient, ticket 4711"],
});

const audit = record(Type.Unknown(), "Whatever should be found again beside the decision, up to 8 KiB of JSON.");

const said = { reason, audit: Type.Optional(audit) };
const lane = { reason, chainId: Type.Optional(ChainId) };
const fees = optional({
  type: FeeType,
  gasPrice: described(Quantity, "Wei per gas of a legacy or EIP-2930 transaction."),
  maxFeePerGas: described(Quantity, "The most wei per gas, tip included."),
  maxPriorityFeePerGas: described(Quantity, "Tip in wei per gas."),
});

export const ApprovalOrder = closed("ApprovalOrder", said);
export type ApprovalOrder = Static<typeof ApprovalOrder>;

export const HoldOrder = closed("HoldOrder", said);
export type HoldOrder = Static<typeof HoldOrder>;

export const ResubmitOrder = closed("ResubmitOrder", {
  ...said,
  disclose: Type.Optional(
    truth(
      "Gives a transaction that only private endpoints (`send: only`) were given to every endpoint that takes sends, from now on.",
    ),
  ),
});
export type ResubmitOrder = Static<typeof ResubmitOrder>;

export const PricedOrder = closed(
  "PricedOrder",
  "Without fees, the market's, and at least a tenth more than stands. Given, they may be more than the market's, up to the ceilings of the chain.",
  { ...said, ...fees },
);
export type PricedOrder = Static<typeof PricedOrder>;

export const ReplaceOrder = closed("ReplaceOrder", "The payload is as in POST /tx, fees included.", {
  ...said,
  payload: Payload,
  allowNoCode: Type.Optional(AllowNoCode),
});
export type ReplaceOrder = Static<typeof ReplaceOrder>;

export const ResolveOrder = closed("ResolveOrder", {
  ...said,
  ...optional({
    action: oneOf(
      ["NOOP", "CANCEL", "REPLACE", "PLACEHOLDER"],
      "Without it, the hook decides now. NOOP: it was seen to, STUCK is over.",
    ),
    payload: Payload,
    allowNoCode: AllowNoCode,
    fees: object(fees, {
      additionalProperties: false,
      description: "Fees of the new attempt; without them, the market's.",
    }),
    rawTransaction: HexInput,
    nonce: Type.Integer({
      minimum: 0,
      description:
        "With PLACEHOLDER: the nonce that is to be filled, its own or the one below it that nothing holds. Where that is not the one that would be filled by now, nothing is done (409).",
      examples: [17],
    }),
    // biome-ignore lint/suspicious/noThenProperty: the contract's word.
    then: oneOf(
      ["track", "stuck", "manual"],
      "What it is afterwards: tracked as usual, reported as STUCK, or left to people.",
    ),
  }),
});
export type ResolveOrder = Static<typeof ResolveOrder>;

export const LaneOrder = closed("LaneOrder", "`chainId` where several chains are configured.", lane);
export type LaneOrder = Static<typeof LaneOrder>;

export const RealignOrder = closed("RealignOrder", {
  ...lane,
  nonce: Type.Optional(
    Type.Integer({ minimum: 0, description: "Where to go down to. Without it, as far as it goes.", examples: [17] }),
  ),
});
export type RealignOrder = Static<typeof RealignOrder>;
