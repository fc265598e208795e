import { type Static, Type } from "typebox";
import { SEVERITIES, TROUBLE_CODES } from "../../domain/troubles/table.ts";
import { Address, ChainId, Nonce, Timestamp, TxId } from "./scalars.ts";
import { named, nullable, oneOf, query } from "./shapes.ts";

const ATTENTION_LIMIT = 500;
export const HELD_AT_MOST_SECONDS = 30;

/** Of an answer that may be held open until it would be another one. */
export const Revision = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "Opaque; the same for as long as the answer says the same.",
  examples: ["6b1f0c9d2e7a4358"],
});

export const Wait = Type.Number({
  minimum: 0,
  maximum: HELD_AT_MOST_SECONDS,
  default: 0,
  description: "Seconds to hold the answer while it still is of `revision`.",
});

const AttentionAction = named(
  "AttentionAction",
  {
    action: Type.String({ examples: ["reprice"] }),
    label: Type.String({ description: "For a button." }),
    method: oneOf(["POST", "DELETE", "GET"]),
    path: Type.String({ examples: ["/api/v1/tx/019a4b7e-8a90-7cc1-b1d2-3e4f5a6b7c8d/reprice"] }),
    body: nullable(Type.Object({}, { additionalProperties: true })),
  },
  { description: "One request that helps; a `reason` is to be put into its body. With GET: where to look first." },
);

export const AttentionItem = named("AttentionItem", {
  id: Type.String({ description: "The same for as long as it is the same trouble." }),
  severity: oneOf(SEVERITIES),
  code: oneOf(TROUBLE_CODES, {
    description: "A cause of explain, the code of an alert, or one of this list alone.",
  }),
  sentence: Type.String({ description: "What is wrong and what it holds up, in plain words." }),
  since: nullable(Timestamp),
  asOf: Type.Optional(Timestamp),
  chainId: nullable(ChainId),
  signer: nullable(Address),
  txId: nullable(TxId),
  nonce: nullable(Nonce),
  nodeId: nullable(Type.String()),
  endpoint: nullable(Type.String({ description: "Masked: what may be a key in it is left out." })),
  waiting: Type.Integer({ minimum: 0, description: "Transactions that wait behind it." }),
  actions: Type.Array(AttentionAction),
});
export type AttentionItem = Static<typeof AttentionItem>;

export const Attention = named("Attention", {
  revision: Revision,
  asOf: Timestamp,
  items: Type.Array(AttentionItem, { description: "Worst first." }),
  more: Type.Integer({ minimum: 0, description: "How many were left out." }),
  past: Type.Array(AttentionItem, {
    description:
      "What alerts of the last quarter of an hour told of a moment, newest first: `since` is when. Nothing of it lasts.",
  }),
});
export type Attention = Static<typeof Attention>;

export const AttentionQuery = query({
  chainId: ChainId,
  limit: Type.Integer({ minimum: 1, maximum: ATTENTION_LIMIT, default: 100 }),
  revision: Revision,
  wait: Wait,
});
export type AttentionQuery = Static<typeof AttentionQuery>;
