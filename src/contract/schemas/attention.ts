import { type Static, Type } from "typebox";
import { SEVERITIES, TROUBLE_CODES } from "../../domain/troubles/table.ts";
import { Address, ChainId, Nonce, STORY, Timestamp, TxId } from "./scalars.ts";
import { count, described, limit, list, named, nullable, object, oneOf, query, text } from "./shapes.ts";

export const HELD_AT_MOST_SECONDS = 30;

/** Query parameters of a long poll: the response may be delayed until the view changes. */
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
  "One request that helps; a `reason` is to be put into its body. With GET: where to look first.",
  {
    action: text("", "reprice"),
    label: text("For a button.", "Offer more"),
    method: oneOf(["POST", "DELETE", "GET"]),
    path: text("", `/api/v1/tx/${STORY.txId}/reprice`),
    body: nullable(object({}, { additionalProperties: true })),
  },
);

export const AttentionItem = named("AttentionItem", {
  id: text("The same for as long as it is the same trouble.", `tx:${STORY.txId}`),
  severity: oneOf(SEVERITIES, "", "ERROR"),
  code: oneOf(
    TROUBLE_CODES,
    "A cause of explain, the code of an alert, or one of this list alone.",
    "FEE_BELOW_BASE_FEE",
  ),
  sentence: text(
    "What is wrong and what it holds up, in plain words.",
    "STUCK at nonce 7: its fee cap is below what blocks ask for; 12 transactions wait behind it.",
  ),
  since: nullable(Timestamp),
  asOf: Type.Optional(Timestamp),
  chainId: nullable(ChainId),
  signer: nullable(Address),
  txId: nullable(TxId),
  nonce: nullable(Nonce),
  nodeId: nullable(text()),
  endpoint: nullable(text("Masked: what may be a key in it is left out.")),
  subscriber: Type.Optional(text("Name of the webhook, for its troubles alone.", "books")),
  signatureId: Type.Optional(described(TxId, "The requested signature, for those that wait for approval.")),
  waiting: count("Transactions that wait behind it.", 12),
  actions: list(AttentionAction),
});
export type AttentionItem = Static<typeof AttentionItem>;

export const Attention = named("Attention", {
  revision: Revision,
  asOf: Timestamp,
  items: list(AttentionItem, "Worst first."),
  more: count("How many were left out."),
  past: list(
    AttentionItem,
    "Alerts of the last 15 minutes about something that is over, newest first: `since` is when it happened.",
    [],
  ),
});
export type Attention = Static<typeof Attention>;

export const AttentionQuery = query({ chainId: ChainId, limit: limit(500), revision: Revision, wait: Wait });
export type AttentionQuery = Static<typeof AttentionQuery>;
