import { type Static, Type } from "typebox";
import { COMPLETION_STATES } from "../../domain/transaction/transitions.ts";
import { Address, ChainId, Decimal, Hash, Nonce, Owner, RequestId, Timestamp, TxId } from "./scalars.ts";
import { count, described, limit, list, named, nullable, oneOf, ordinal, query, truth } from "./shapes.ts";
import { SubStateWord } from "./transaction-schema.ts";

const CompletionCost = named("CompletionCost", "What the transaction has cost, as it is known now.", {
  createdAt: Timestamp,
  owner: nullable(Owner),
  receiver: nullable(Address, { description: "Null for a deployment." }),
  fees: described(Decimal, "Wei paid in fees; 0 if none of its payloads is final."),
  value: described(Decimal, "Wei moved; 0 if nothing was mined, or it reverted."),
});

export const Completion = named("Completion", {
  seq: ordinal("Gapless within an epoch, in commit order."),
  epoch: ordinal("The epoch it was written in: the page's, or an older one."),
  txId: TxId,
  chainId: ChainId,
  signer: Address,
  requestId: nullable(RequestId),
  nonce: nullable(Nonce),
  state: oneOf(COMPLETION_STATES),
  subState: nullable(SubStateWord),
  settled: truth("False: the payload may still execute; do not pay again under another id.", true),
  txHash: nullable(Hash),
  at: Timestamp,
  cost: Type.Optional(
    nullable(CompletionCost, {
      description: "With `include=cost` alone; null: retention has removed the transaction.",
    }),
  ),
});
export type Completion = Static<typeof Completion>;

export const CompletionsPage = named("CompletionsPage", {
  epoch: Type.Integer({
    description: "The feed's, for the next `epoch`. Changes only when the database's history did.",
    examples: [1],
  }),
  items: list(Completion),
  next: count("The value for the next `after`.", 1),
  filtered: Type.Optional(
    Type.Literal(true, {
      description: "The key is limited to signers or chains: gaps in the numbers are others', and `next` is past them.",
    }),
  ),
});
export type CompletionsPage = Static<typeof CompletionsPage>;

const position = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

const place = {
  after: Type.Integer({ ...position, default: 0, description: "0 is the beginning." }),
  epoch: Type.Integer({ ...position, description: "Epoch of `after`: refused if the feed has another one by now." }),
};

export const CompletionsQuery = query({
  ...place,
  limit: limit(1_000),
  include: oneOf(["cost"], "Adds `cost` to every item."),
  wait: Type.Number({
    minimum: 0,
    maximum: 30,
    default: 0,
    description: "Seconds to wait for a first item where there is none yet.",
  }),
});
export type CompletionsQuery = Static<typeof CompletionsQuery>;

export const CompletionStreamQuery = query(place);
