import { type Static, Type } from "typebox";
import { SCOPES } from "../../domain/keys/principal.ts";
import { ATTEMPT_KINDS } from "../../domain/transaction/transaction.ts";
import {
  STATES,
  SUB_STATES,
  type SubState,
  TRANSITIONS,
  type TransitionEvent,
} from "../../domain/transaction/transitions.ts";
import { OFFERED_ACTIONS } from "../../domain/troubles/situation.ts";
import { CAUSE_CODES, HELP_CODES } from "../../domain/troubles/table.ts";
import { FeeType } from "./create.ts";
import { OnChain } from "./on-chain.ts";
import {
  Address,
  After,
  BlockNumber,
  ChainId,
  Decimal,
  Gas,
  Hash,
  Hex,
  hex,
  Nonce,
  Owner,
  PoolName,
  Price,
  RequestId,
  STORY,
  Timestamp,
  TxId,
} from "./scalars.ts";
import {
  count,
  described,
  limit,
  list,
  MOSTLY_NULL,
  named,
  nullable,
  object,
  oneOf,
  optional,
  ordinal,
  query,
  record,
  text,
  truth,
} from "./shapes.ts";

const State = oneOf(STATES, "State of the transaction.", "CONFIRMED");
export const SubStateWord = oneOf(
  Object.values(SUB_STATES).flat() as SubState[],
  "How far it has come, or why it ended.",
);

const fees = optional({ gasPrice: Price, maxFeePerGas: Price, maxPriorityFeePerGas: Price });

const NormalisedPayload = named(
  "NormalisedPayload",
  "What the caller asked for, in one form. `to` is null for a deployment.",
  {
    to: nullable(Address, { examples: [STORY.recipient] }),
    data: Hex,
    value: Decimal,
    ...optional({ gas: Gas, type: FeeType }),
    ...fees,
    accessList: Type.Optional(list(object({ address: Address, storageKeys: list(Hash) }))),
  },
);

const Attempt = named(
  "Attempt",
  "One signed payload at the transaction's nonce. Each hash is tracked until finality; null where a node signs with its own key and has not said which transaction that made.",
  {
    ordinal: ordinal(),
    kind: oneOf(ATTEMPT_KINDS),
    txHash: nullable(Hash),
    gas: Gas,
    type: FeeType,
    ...fees,
    createdAt: Timestamp,
    firstSentAt: nullable(Timestamp),
    private: Type.Optional(truth("Only private endpoints (`send: only`) were given it, and it is not disclosed.")),
  },
);

const Receipt = named("Receipt", {
  txHash: Hash,
  blockNumber: BlockNumber,
  blockHash: Hash,
  transactionIndex: count(),
  status: oneOf(["success", "reverted"]),
  verified: Type.Optional(
    truth(
      "True once the transaction is final: two endpoints gave this receipt, or, with one endpoint, its block's own hash bears it out where the chain's blocks can be recomputed. False while it is mined and not final: the whole receipt, its status included, is one endpoint's word and may be revised.",
    ),
  ),
  gasUsed: Gas,
  effectiveGasPrice: nullable(Price),
  besideGas: Type.Optional(
    described(Decimal, "Wei paid beside gas × price: for blobs, or to a rollup for its data. Absent: none."),
  ),
  besideGasUnsure: Type.Optional(truth("The amount beside gas may be higher: neither block nor endpoint confirms it.")),
  contractAddress: nullable(Address, MOSTLY_NULL),
});

const HistoryEntry = named("HistoryEntry", {
  ordinal: Type.Integer(),
  event: oneOf(Object.keys(TRANSITIONS) as TransitionEvent[]),
  fromState: nullable(State),
  state: State,
  subState: nullable(SubStateWord),
  nodeId: nullable(text()),
  fencingToken: nullable(Type.Integer()),
  reason: nullable(text()),
  actor: nullable(
    text(
      "Where this step was decided: `operator:<name of the API key>`, `hook`, `policy`, or `caller` for what its `validUntil` asked for.",
    ),
  ),
  audit: nullable(
    object({}, { additionalProperties: true, description: "What was decided, and what the decider noted." }),
  ),
  count: ordinal("Repeats of one event are one entry."),
  firstAt: Timestamp,
  lastAt: Timestamp,
});

const Confirmation = named("Confirmation", "A canonical block on top of the receipt's.", {
  number: count(),
  hash: Hash,
});

const AwaitedApproval = named(
  "AwaitedApproval",
  "While CREATED/AWAITING_APPROVAL: for whoever decides it, beside `payload`.",
  {
    rule: text("The bound of a policy that asked for it.", "signers.*.maxValue.perTransaction"),
    expiresAt: Timestamp,
    worstCost: nullable(
      described(
        Decimal,
        "The most that it can cost in wei under the ceilings of the node that answers, value included; null: that node does not serve the chain.",
      ),
    ),
  },
);

const DecodedCall = named(
  "DecodedCall",
  "The payload in words, if an ABI of `PUT /abis` or a token standard has its function. For people: nothing is decided by it.",
  {
    contract: nullable(text("Name of the ABI; null: a token standard.", "Payouts")),
    name: text("", "transfer"),
    args: list(object({ name: text("", "to"), value: text("", STORY.recipient) })),
  },
);

export const Transaction = named(
  "Transaction",
  "`txHash` is the mined attempt's, else the newest's. `heldSince`: since when an operator holds it back; null where nobody does.",
  {
    txId: TxId,
    chainId: ChainId,
    signer: Address,
    requestId: nullable(RequestId),
    owner: nullable(Owner),
    nonce: nullable(Nonce),
    state: State,
    subState: nullable(SubStateWord),
    txHash: nullable(Hash),
    payload: NormalisedPayload,
    gas: nullable(Gas),
    metadata: nullable(object({}, { additionalProperties: true }), MOSTLY_NULL),
    validUntil: nullable(Timestamp, MOSTLY_NULL),
    heldSince: nullable(Timestamp, MOSTLY_NULL),
    attempts: list(Attempt),
    receipt: nullable(Receipt),
    lastError: nullable(text()),
    submitAttempts: count("", 1),
    lastSubmittedAt: nullable(Timestamp),
    nextResubmitAt: nullable(Timestamp, MOSTLY_NULL),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    confirmedAt: nullable(Timestamp),
    ...optional({
      approval: AwaitedApproval,
      decoded: DecodedCall,
      history: list(HistoryEntry),
      confirmations: list(Confirmation),
      onChain: OnChain,
    }),
  },
);
export type Transaction = Static<typeof Transaction>;

export const TransactionPage = named("TransactionPage", {
  items: list(Transaction),
  next: nullable(text("The `after` of the next page; null at the end.")),
});
export type TransactionPage = Static<typeof TransactionPage>;

const include = Type.Unsafe<string>({
  type: "string",
  pattern: "^(history|confirmations|logs)(,(history|confirmations|logs))*$",
  description: "Comma-separated: history, confirmations, logs. With logs the chain is asked, for `onChain`.",
  examples: ["history,confirmations"],
});

export const TransactionQuery = query({ include });

export const ByRequestQuery = object(
  { requestId: RequestId, ...optional({ signer: Address, pool: PoolName, chainId: ChainId, include }) },
  { additionalProperties: false, description: "By the signer, or by the pool that was asked." },
);

export const TransactionListQuery = query({
  signer: Address,
  chainId: ChainId,
  state: State,
  requestId: RequestId,
  txHash: hex({ pattern: "^0x[0-9a-fA-F]{64}$", description: "Any attempt's hash." }),
  createdAfter: described(Timestamp, "Only transactions whose `createdAt` is this time or later."),
  createdBefore: described(Timestamp, "Only transactions whose `createdAt` is before this time."),
  order: oneOf(["newest", "oldest"], { default: "newest", description: "Which come first." }),
  after: After,
  limit: limit(1_000, 50),
});
export type TransactionListQuery = Static<typeof TransactionListQuery>;

const BEHIND =
  "waits behind nonce 7, which is STUCK: offers at most 20 gwei for gas that costs 31 gwei since block 9120";

const Cause = object({
  code: oneOf(CAUSE_CODES, "", "WAITING_BEHIND"),
  text: text("", BEHIND),
  since: Type.Optional(Timestamp),
  data: Type.Optional(
    record(Type.Union([text(), Type.Number(), Type.Null()]), "The figures of the text; wei as decimal strings."),
  ),
});

const OfferedAction = named("OfferedAction", "One request that helps, and would be accepted now.", {
  action: oneOf(OFFERED_ACTIONS, "", "reprice"),
  code: oneOf(HELP_CODES, "The help that it is.", "REPRICE"),
  label: text("For a button.", "Offer more for nonce 7"),
  method: oneOf(["POST", "DELETE"]),
  path: text("", `/api/v1/tx/${STORY.txId}/reprice`),
  body: record(Type.Union([text(), Type.Number(), truth()]), "Complete; `reason` may be put in better words.", {
    reason: "explain: FEE_BELOW_BASE_FEE",
  }),
  scope: oneOf(SCOPES, "What the API key needs. Its own maker may cancel with `submit`.", "operate"),
});

export const Explanation = named("Explanation", {
  summary: text(
    "What is wrong, what that holds up, and what helps: for a person in a hurry.",
    `Nonce 8: ${BEHIND}. What helps: offer more for nonce 7.`,
  ),
  causes: list(Cause, "What decides first."),
  blockedBy: Type.Optional(
    object(
      { txId: Type.Optional(TxId), nonce: Nonce },
      "What it waits for. Without an id where no transaction holds that nonce, and for a key that is limited to signers or chains.",
    ),
  ),
  help: list(
    object({ code: oneOf(HELP_CODES, "", "REPRICE"), text: text("", "offer more for nonce 7") }),
    "What helps now, most useful first; nothing that would be refused, or would change nothing.",
  ),
  actions: list(OfferedAction, "Of that, what a request does."),
});
export type Explanation = Static<typeof Explanation>;
