import { type Static, Type } from "typebox";
import { COMPLETION_STATES } from "../../domain/transaction/transitions.ts";
import { PAUSED_BY } from "../../domain/webhooks/subscriber.ts";
import { Address, ChainId, NodeId, Owner, STORY, Timestamp } from "../schemas/scalars.ts";
import {
  amount,
  closed,
  count,
  described,
  list,
  MOSTLY_NULL,
  named,
  nullable,
  object,
  oneOf,
  optional,
  ordinal,
  text,
  truth,
} from "../schemas/shapes.ts";
import { ADMIN, type CallScope, declared, ok, READ } from "./call.ts";

/** API calls for webhooks that deliver outcomes. */

const OPERATE: CallScope = { scope: "operate", or: "admin" };

const Name = Type.String({
  pattern: "^[A-Za-z0-9_.-]{1,64}$",
  description: "Name of the webhook.",
  examples: ["books"],
});
export const SubscriberId = Type.String({
  format: "uuid",
  description: "Id of the webhook.",
  examples: ["019a4b7e-9c1d-7e20-8f31-4a5b6c7d8e9f"],
});
const url = text("Where outcomes are posted; http:// or https://.", "https://books.example/outcomes");
const GiveUpAfter = Type.Integer({
  minimum: 60,
  maximum: 2_592_000,
  default: 259_200,
  description: "It is paused after failing for as many seconds.",
  examples: [259_200],
});
const Position = count("A position in the feed.", 41);
const filter = {
  signers: list(Address, { minItems: 1, description: "Only outcomes of these signers." }),
  chains: list(ChainId, { minItems: 1, description: "Only outcomes on these chains." }),
  keys: list(Name, { minItems: 1, description: "Only outcomes of transactions that these API keys created." }),
  states: list(oneOf(COMPLETION_STATES), { minItems: 1, description: "Only outcomes in these states." }),
};
const shownFilter = {
  signers: nullable(filter.signers, { description: "Null: all. Likewise the other filters." }),
  chains: nullable(filter.chains, MOSTLY_NULL),
  keys: nullable(filter.keys, MOSTLY_NULL),
  states: nullable(filter.states, MOSTLY_NULL),
};
const Reason = Type.String({ minLength: 1, maxLength: 1_000, description: "Why; kept for the audit." });
const Secret = text(
  "Verifies deliveries (Standard Webhooks). Stored nowhere: shown now, and never again.",
  "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
);

const webhook = {
  subscriberId: SubscriberId,
  name: Name,
  url: described(url, "Without its query, which may have a secret."),
  ...shownFilter,
  state: oneOf(["ACTIVE", "FAILING", "PAUSED"], "FAILING: the last outcomes were not taken, and are tried again."),
  paused: nullable(object({ by: oneOf(PAUSED_BY), why: text(), at: Timestamp }), MOSTLY_NULL),
  epoch: ordinal("Epoch of the feed that the receiver knows."),
  position: described(Position, "Every outcome up to here is delivered, or filtered out."),
  behind: count("Outcomes of the feed above its position, wanted or not.", 0),
  behindSince: nullable(Timestamp, MOSTLY_NULL),
  failingSince: nullable(Timestamp, MOSTLY_NULL),
  lastAnswer: nullable(
    object({
      status: nullable(Type.Integer({ description: "HTTP status; null: there was none.", examples: [200] })),
      reason: nullable(text("Why there was none.")),
      at: Timestamp,
    }),
  ),
  nextTryAt: nullable(Timestamp, MOSTLY_NULL),
  deliveredAt: nullable(Timestamp),
  giveUpAfterSeconds: GiveUpAfter,
  generation: ordinal("Generation of the secret."),
  rotatedUntil: nullable(
    described(Timestamp, "Until then, deliveries are signed with the generation before, too."),
    MOSTLY_NULL,
  ),
  nodeId: nullable(described(NodeId, "The node that delivers.")),
  createdBy: nullable(Owner),
  createdAt: Timestamp,
  changedBy: text("", "operator:alice"),
  changedAt: Timestamp,
};

export const Webhook = named("Webhook", webhook);
export type Webhook = Static<typeof Webhook>;

export const Webhooks = named("Webhooks", { items: list(Webhook) });

export const NewWebhook = named("NewWebhook", { ...webhook, secret: Secret });
export type NewWebhook = Static<typeof NewWebhook>;

export const AddWebhook = closed(
  "AddWebhook",
  { examples: [{ name: "books", url: "https://books.example/outcomes", signers: [STORY.signer] }] },
  {
    name: Name,
    url,
    ...optional({
      ...filter,
      after: described(Position, "Begins after this position; without it, at the end of the feed."),
      giveUpAfterSeconds: GiveUpAfter,
    }),
  },
);
export type AddWebhook = Static<typeof AddWebhook>;

export const ChangeWebhook = closed(
  "ChangeWebhook",
  { description: "Of the filters, all are replaced where one is given.", examples: [{ states: ["CONFIRMED"] }] },
  optional({ url, ...filter, giveUpAfterSeconds: GiveUpAfter, reason: Reason }),
);
export type ChangeWebhook = Static<typeof ChangeWebhook>;

export const WebhookReason = closed(
  "WebhookReason",
  { examples: [{ reason: "maintenance" }] },
  optional({ reason: Reason }),
);
export type WebhookReason = Static<typeof WebhookReason>;

export const ReplayWebhook = closed(
  "ReplayWebhook",
  { examples: [{ after: 41 }] },
  { after: Position, ...optional({ reason: Reason }) },
);
export type ReplayWebhook = Static<typeof ReplayWebhook>;

export const RotateWebhook = closed(
  "RotateWebhook",
  { examples: [{ overlapSeconds: 86_400 }] },
  optional({
    overlapSeconds: Type.Integer({
      minimum: 0,
      maximum: 2_592_000,
      default: 86_400,
      description: "For as long, deliveries are signed with both secrets.",
    }),
    reason: Reason,
  }),
);
export type RotateWebhook = Static<typeof RotateWebhook>;

export const TestedWebhook = named("TestedWebhook", {
  delivered: truth("", true),
  status: nullable(Type.Integer({ examples: [204] })),
  reason: text("The status, or why there was none.", "HTTP 204"),
  seconds: amount("How long the receiver took.", 0.04),
});
export type TestedWebhook = Static<typeof TestedWebhook>;

export const RemovedWebhook = named("RemovedWebhook", { subscriberId: SubscriberId, name: Name });
export type RemovedWebhook = Static<typeof RemovedWebhook>;

const changed = { takes: ["action"], audited: true } as const;
const one = { 200: { description: "The webhook as it is now.", schema: Webhook } };

export const webhooks = declared({
  listWebhooks: {
    at: "get /api/v1/webhooks",
    scope: READ,
    face: "webhooks",
    summary: "List webhooks with position, backlog and last answer",
    answers: ok("By name; a key that is limited sees those of its own signers and chains.", Webhooks),
  },
  addWebhook: {
    at: "post /api/v1/webhooks",
    scope: ADMIN,
    face: "addWebhook",
    ...changed,
    summary: "Have outcomes posted to a receiver",
    description:
      "At least once, in feed order per lane, signed as Standard Webhooks. Needs FENCEPOST_CLUSTER_SECRET. A key that is limited to signers or chains subscribes to these alone.",
    body: AddWebhook,
    answers: { 201: { description: "The secret is shown this once.", schema: NewWebhook } },
    noStore: true,
    errors: ["CONFLICT", "FEED_TRUNCATED"],
  },
  getWebhook: {
    at: "get /api/v1/webhooks/{subscriberId}",
    scope: READ,
    face: "webhook",
    summary: "Read a webhook",
    answers: one,
    errors: ["NOT_FOUND"],
  },
  changeWebhook: {
    at: "put /api/v1/webhooks/{subscriberId}",
    scope: ADMIN,
    face: "changeWebhook",
    ...changed,
    summary: "Change what is given of a webhook",
    body: ChangeWebhook,
    answers: one,
    errors: ["NOT_FOUND", "CONFLICT"],
  },
  removeWebhook: {
    at: "delete /api/v1/webhooks/{subscriberId}",
    scope: ADMIN,
    face: "removeWebhook",
    ...changed,
    summary: "Remove a webhook",
    description: "Its position is forgotten, and nothing more is posted.",
    answers: ok("Removed.", RemovedWebhook),
    errors: ["NOT_FOUND", "CONFLICT"],
  },
  pauseWebhook: {
    at: "post /api/v1/webhooks/{subscriberId}/pause",
    scope: OPERATE,
    face: "pauseWebhook",
    ...changed,
    summary: "Pause a webhook",
    description: "Its position is kept.",
    body: WebhookReason,
    answers: one,
    errors: ["NOT_FOUND", "CONFLICT"],
  },
  resumeWebhook: {
    at: "post /api/v1/webhooks/{subscriberId}/resume",
    scope: OPERATE,
    face: "resumeWebhook",
    ...changed,
    summary: "Resume a webhook, or have one that fails tried now",
    body: WebhookReason,
    answers: one,
    errors: ["NOT_FOUND", "CONFLICT"],
  },
  replayWebhook: {
    at: "post /api/v1/webhooks/{subscriberId}/replay",
    scope: OPERATE,
    face: "replayWebhook",
    ...changed,
    summary: "Deliver everything after a position again",
    description: "Under the same ids, so that a receiver can drop repeats.",
    body: ReplayWebhook,
    answers: one,
    errors: ["NOT_FOUND", "CONFLICT", "FEED_TRUNCATED"],
  },
  testWebhook: {
    at: "post /api/v1/webhooks/{subscriberId}/test",
    scope: ADMIN,
    face: "testWebhook",
    ...changed,
    summary: "Post a signed test event now",
    body: WebhookReason,
    answers: ok("The receiver's answer.", TestedWebhook),
    errors: ["NOT_FOUND"],
  },
  rotateWebhook: {
    at: "post /api/v1/webhooks/{subscriberId}/rotate",
    scope: ADMIN,
    face: "rotateWebhook",
    ...changed,
    summary: "Begin the next generation of a webhook's secret",
    description: "Until the overlap is over, deliveries are signed with both.",
    body: RotateWebhook,
    answers: { 200: { description: "The secret is shown this once.", schema: NewWebhook } },
    noStore: true,
    errors: ["NOT_FOUND", "CONFLICT"],
  },
});
