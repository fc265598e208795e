import { type Static, Type } from "typebox";
import { STATES } from "../../domain/transaction/transitions.ts";
import { Problem } from "./problem.ts";
import {
  Address,
  ChainId,
  GasLimit,
  Hash,
  HexInput,
  Nonce,
  PoolName,
  Quantity,
  RequestId,
  STORY,
  TxId,
} from "./scalars.ts";
import { closed, described, list, nullable, object, oneOf, optional, record, truth } from "./shapes.ts";

/**
 * Schemas of the requests and responses of POST /tx and POST /tx/batch. The create stage validates requests in depth;
 * these only describe and type them.
 */

export const FeeType = oneOf(
  ["legacy", "eip2930", "eip1559"],
  "Type of the transaction; without it, the newest that the chain has.",
  "eip1559",
);

export interface AccessListEntry {
  /** Contract that the transaction reads or writes. */
  readonly address: `0x${string}`;
  /** Storage slots of the contract, 32 bytes each. */
  readonly storageKeys: readonly `0x${string}`[];
}

const AccessList = Type.Unsafe<readonly AccessListEntry[]>(
  list(object({ address: Address, storageKeys: list(Hash) }), "EIP-2930 access list."),
);

const pricing = optional({
  value: described(Quantity, "Wei to transfer with the call; none without it."),
  gas: described(GasLimit, "Gas limit; without it, the chain's estimate with a margin."),
  maxFeePerGas: described(
    Quantity,
    "The most wei per gas, tip included; without it, by the market, up to the chain's ceilings.",
  ),
  maxPriorityFeePerGas: described(Quantity, "Tip in wei per gas; without it, by the market."),
  gasPrice: described(Quantity, "Wei per gas of a legacy or EIP-2930 transaction."),
  accessList: AccessList,
  type: FeeType,
});

const Arguments = Type.Unsafe<readonly unknown[]>(
  list(Type.Unknown(), "Arguments of the function or constructor, in order."),
);
const Abi = Type.Unsafe<readonly unknown[]>(list(Type.Unknown(), "JSON, or human-readable lines."));

const Receiver = described(Address, "Receiver: an account or a contract, in any casing without a wrong checksum.");

const transfer = { to: STORY.recipient, value: "1000000000000000" };

const RawPayload = closed(
  "RawPayload",
  { description: "A transfer, or a call whose data is already encoded.", examples: [transfer] },
  {
    to: Receiver,
    data: Type.Optional(described(HexInput, "Encoded call, as hex; none for a plain transfer.")),
    ...pricing,
  },
);
export type RawPayload = Static<typeof RawPayload>;

export const CallPayload = closed(
  "CallPayload",
  {
    description: "A contract call that Fencepost encodes.",
    examples: [
      {
        to: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
        function: "transfer(address,uint256)",
        args: [transfer.to, "250"],
      },
    ],
  },
  {
    to: Receiver,
    function: Type.Unsafe<string | readonly unknown[]>({
      anyOf: [{ type: "string" }, { type: "array", items: {} }],
      description:
        "Human-readable signature, or an ABI in which exactly one function fits. Beside `abi`: the name of one of its functions, or the signature where there are several of that name.",
    }),
    abi: Type.Optional(Abi),
    args: Arguments,
    ...pricing,
  },
);
export type CallPayload = Static<typeof CallPayload>;

export const DeployPayload = closed(
  "DeployPayload",
  { description: "A contract creation.", examples: [{ bytecode: "0x600a600c600039600a6000f3602a60005260206000f3" }] },
  {
    bytecode: described(HexInput, "Creation code of the contract, with every library linked."),
    ...optional({ abi: Abi, args: Arguments }),
    ...pricing,
  },
);
export type DeployPayload = Static<typeof DeployPayload>;

export const Payload = Type.Union([RawPayload, CallPayload, DeployPayload], {
  title: "Payload",
  description: "What to send: a transfer or encoded call, a contract call, or a deployment.",
});

const Metadata = record(Type.Unknown(), "The caller's own notes, up to 8 KiB of JSON; not compared between repeats.");

const Pool = closed(
  "SignerPool",
  {
    description:
      "Any signer of this pool: the one with the shortest wait that can pay. Request ids are unique in a pool.",
    examples: [{ pool: "payouts" }],
  },
  {
    pool: PoolName,
    stickyKey: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: "Transactions with the same one get the same signer of the pool, always, and so keep their order.",
      }),
    ),
  },
);

export const AllowNoCode = truth(
  "Take call data to an address that has no code, which does nothing and is paid for. Without it that is 422 with reason NO_CODE, where nothing of the signer waits that may deploy it. Not compared between repeats.",
);

const ValidUntil = Type.String({
  format: "date-time",
  description:
    "Not mined by then, it is cancelled and ends as FAILED_FINAL/EXPIRED. An instant of ISO 8601 with its offset, in the future by the database's clock and at most 366 days ahead. Compared between repeats.",
  examples: ["2026-11-02T09:45:00Z"],
});

const ExactNonce = described(
  Nonce,
  "For callers whose guard against a double is a nonce of their own: given exactly, or refused as CONFLICT with `nextNonce`. Leave it out and Fencepost gives the next one. Not compared between repeats.",
);

export const CreateTransaction = closed(
  "CreateTransaction",
  { examples: [{ signer: STORY.signer, requestId: "order-42", payload: transfer }] },
  {
    chainId: Type.Optional(ChainId),
    signer: Type.Union([Address, Pool], {
      description: "Sender: an address, or a pool of which the node chooses one.",
    }),
    nonce: Type.Optional(ExactNonce),
    requestId: Type.Optional(RequestId),
    payload: Payload,
    allowNoCode: Type.Optional(AllowNoCode),
    validUntil: Type.Optional(ValidUntil),
    metadata: Type.Optional(Metadata),
  },
);
export type CreateTransaction = Static<typeof CreateTransaction>;

const created = {
  txId: TxId,
  chainId: ChainId,
  signer: Address,
  nonce: nullable(Nonce),
  state: oneOf(STATES, "CREATED, without a nonce: it waits, for approval if a policy requires that.", "ALLOCATED"),
  requestId: nullable(RequestId),
};

export const CreatedTransaction = closed("CreatedTransaction", created);
export type CreatedTransaction = Static<typeof CreatedTransaction>;

const CreatedItem = closed("CreatedItem", {
  status: Type.Unsafe<200 | 202>({
    type: "integer",
    enum: [202, 200],
    description: "202 accepted; 200 the same request had been accepted before.",
  }),
  ...created,
});

export const BATCH_ITEMS_LIMIT = 1_000;

export const CreateBatch = closed("CreateBatch", {
  transactions: list(CreateTransaction, { maxItems: BATCH_ITEMS_LIMIT }),
});
export type CreateBatch = Static<typeof CreateBatch>;

export const BatchResults = closed("BatchResults", {
  results: list(
    Type.Union([CreatedItem, Problem]),
    "One per transaction, in order. Partial success is normal: look at each status.",
  ),
});
export type BatchResults = Static<typeof BatchResults>;
