import { type Static, Type } from "typebox";
import { ATTEMPT_KINDS } from "../domain/transaction.ts";
import { STATES, SUB_STATES, type SubState, TRANSITIONS, type TransitionEvent } from "../domain/transitions.ts";
import { Address, ChainId, Decimal, Hash, Hex, Nonce, nullable, oneOf, RequestId, Timestamp, TxId } from "./scalars.ts";

const LIST_LIMIT = 1_000;

const State = oneOf(STATES);
export const SubStateWord = oneOf(Object.values(SUB_STATES).flat() as SubState[], {
  description: "How far it has come, or why it ended.",
});

const FeeType = oneOf(["legacy", "eip2930", "eip1559"]);

const fees = {
  gasPrice: Type.Optional(Decimal),
  maxFeePerGas: Type.Optional(Decimal),
  maxPriorityFeePerGas: Type.Optional(Decimal),
};

const NormalisedPayload = Type.Object(
  {
    to: nullable(Address),
    data: Hex,
    value: Decimal,
    gas: Type.Optional(Decimal),
    type: Type.Optional(FeeType),
    ...fees,
    accessList: Type.Optional(Type.Array(Type.Object({ address: Address, storageKeys: Type.Array(Hash) }))),
  },
  { title: "NormalisedPayload", description: "What the caller asked for, in one form. `to` is null for a deployment." },
);

export const Attempt = Type.Object(
  {
    ordinal: Type.Integer({ minimum: 1 }),
    kind: oneOf(ATTEMPT_KINDS),
    txHash: nullable(Hash),
    gas: Decimal,
    type: FeeType,
    ...fees,
    createdAt: Timestamp,
    firstSentAt: nullable(Timestamp),
  },
  {
    title: "Attempt",
    description:
      "One signed payload at the transaction's nonce. Each hash is tracked until finality; null where a node signs with its own key and has not said which transaction that made.",
  },
);
export type Attempt = Static<typeof Attempt>;

const Receipt = Type.Object(
  {
    txHash: Hash,
    blockNumber: Type.Integer({ minimum: 0 }),
    blockHash: Hash,
    transactionIndex: Type.Integer({ minimum: 0 }),
    status: oneOf(["success", "reverted"]),
    gasUsed: Decimal,
    effectiveGasPrice: nullable(Decimal),
    contractAddress: nullable(Address),
  },
  { title: "Receipt" },
);

const HistoryEntry = Type.Object(
  {
    ordinal: Type.Integer(),
    event: oneOf(Object.keys(TRANSITIONS) as TransitionEvent[]),
    fromState: nullable(State),
    state: State,
    subState: nullable(SubStateWord),
    nodeId: nullable(Type.String()),
    fencingToken: nullable(Type.Integer()),
    reason: nullable(Type.String()),
    actor: nullable(
      Type.String({
        description: "Where this step was decided: `operator:<name of the API key>`, `hook` or `policy`.",
      }),
    ),
    audit: nullable(
      Type.Object({}, { additionalProperties: true, description: "What was decided, and what the decider noted." }),
    ),
    count: Type.Integer({ minimum: 1, description: "Repeats of one event are one entry." }),
    firstAt: Timestamp,
    lastAt: Timestamp,
  },
  { title: "HistoryEntry" },
);

const Confirmation = Type.Object(
  { number: Type.Integer({ minimum: 0 }), hash: Hash },
  { title: "Confirmation", description: "A canonical block on top of the receipt's." },
);

export const Transaction = Type.Object(
  {
    txId: TxId,
    chainId: ChainId,
    signer: Address,
    requestId: nullable(RequestId),
    nonce: nullable(Nonce),
    state: State,
    subState: nullable(SubStateWord),
    txHash: nullable(Hash),
    payload: NormalisedPayload,
    gas: nullable(Decimal),
    metadata: nullable(Type.Object({}, { additionalProperties: true })),
    attempts: Type.Array(Attempt),
    receipt: nullable(Receipt),
    lastError: nullable(Type.String()),
    submitAttempts: Type.Integer({ minimum: 0 }),
    lastSubmittedAt: nullable(Timestamp),
    nextResubmitAt: nullable(Timestamp),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    confirmedAt: nullable(Timestamp),
    history: Type.Optional(Type.Array(HistoryEntry)),
    confirmations: Type.Optional(Type.Array(Confirmation)),
  },
  { title: "Transaction", description: "`txHash` is the mined attempt's, else the newest's." },
);
export type Transaction = Static<typeof Transaction>;

export const TransactionPage = Type.Object(
  {
    items: Type.Array(Transaction),
    next: nullable(Type.String({ description: "The `after` of the next page; null at the end." })),
  },
  { title: "TransactionPage" },
);
export type TransactionPage = Static<typeof TransactionPage>;

const include = Type.Optional(
  Type.Unsafe<string>({
    type: "string",
    pattern: "^(history|confirmations)(,(history|confirmations))*$",
    description: "Comma-separated: history, confirmations.",
    examples: ["history,confirmations"],
  }),
);

export const TransactionQuery = Type.Object({ include }, { additionalProperties: false });

export const ByRequestQuery = Type.Object(
  { signer: Address, requestId: RequestId, chainId: Type.Optional(ChainId), include },
  { additionalProperties: false },
);

export const TransactionListQuery = Type.Object(
  {
    signer: Type.Optional(Address),
    chainId: Type.Optional(ChainId),
    state: Type.Optional(State),
    requestId: Type.Optional(RequestId),
    txHash: Type.Optional(Type.String({ pattern: "^0x[0-9a-fA-F]{64}$", description: "Any attempt's hash." })),
    order: Type.Optional(oneOf(["newest", "oldest"], { default: "newest" })),
    after: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: "`next` of the page before." })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIST_LIMIT, default: 50 })),
  },
  { additionalProperties: false },
);
export type TransactionListQuery = Static<typeof TransactionListQuery>;
