import { type Static, Type } from "typebox";
import { Payload } from "./create.ts";
import { ChainId, HexInput, oneOf, Quantity } from "./scalars.ts";

/** What operators may do, and what they say with it. Each action validates its own body in depth; this describes it. */

export const TRANSACTION_ACTIONS = ["resubmit", "reprice", "cancel", "replace", "resolve"] as const;
export type TransactionAction = (typeof TRANSACTION_ACTIONS)[number];
export const LANE_ACTIONS = ["suspend", "resume", "realign"] as const;
export type LaneAction = (typeof LANE_ACTIONS)[number];

const said = {
  reason: Type.String({
    minLength: 1,
    maxLength: 1_000,
    description: "Why; kept in the history.",
    examples: ["wrong recipient, ticket 4711"],
  }),
  audit: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: "Whatever should be found again beside the decision, up to 8 KiB of JSON.",
    }),
  ),
};

const fees = {
  type: Type.Optional(oneOf(["legacy", "eip2930", "eip1559"])),
  gasPrice: Type.Optional(Quantity),
  maxFeePerGas: Type.Optional(Quantity),
  maxPriorityFeePerGas: Type.Optional(Quantity),
};

export const ResubmitOrder = Type.Object(said, { title: "ResubmitOrder", additionalProperties: false });
export type ResubmitOrder = Static<typeof ResubmitOrder>;

export const PricedOrder = Type.Object(
  { ...said, ...fees },
  {
    title: "PricedOrder",
    additionalProperties: false,
    description:
      "Without fees, the market's, and at least a tenth more than stands. Given, they may be more than the market's, up to the ceilings of the chain.",
  },
);
export type PricedOrder = Static<typeof PricedOrder>;

export const ReplaceOrder = Type.Object(
  { ...said, payload: Payload },
  { title: "ReplaceOrder", additionalProperties: false, description: "The payload is as in POST /tx, fees included." },
);
export type ReplaceOrder = Static<typeof ReplaceOrder>;

export const ResolveOrder = Type.Object(
  {
    ...said,
    action: Type.Optional(
      oneOf(["NOOP", "CANCEL", "REPLACE", "PLACEHOLDER"], {
        description: "Without it, the hook decides now. NOOP: it was seen to, STUCK is over.",
      }),
    ),
    payload: Type.Optional(Payload),
    fees: Type.Optional(Type.Object(fees, { additionalProperties: false })),
    rawTransaction: Type.Optional(HexInput),
    // biome-ignore lint/suspicious/noThenProperty: the contract's word.
    then: Type.Optional(
      oneOf(["track", "stuck", "manual"], {
        description: "What it is afterwards: tracked as usual, reported as STUCK, or left to people.",
      }),
    ),
  },
  { title: "ResolveOrder", additionalProperties: false },
);
export type ResolveOrder = Static<typeof ResolveOrder>;

export const LaneOrder = Type.Object(
  { reason: said.reason, chainId: Type.Optional(ChainId) },
  { title: "LaneOrder", additionalProperties: false, description: "`chainId` where several chains are configured." },
);
export type LaneOrder = Static<typeof LaneOrder>;

export const RealignOrder = Type.Object(
  {
    reason: said.reason,
    chainId: Type.Optional(ChainId),
    nonce: Type.Optional(
      Type.Integer({ minimum: 0, description: "Where to go down to. Without it, as far as it goes.", examples: [17] }),
    ),
  },
  { title: "RealignOrder", additionalProperties: false },
);
export type RealignOrder = Static<typeof RealignOrder>;
