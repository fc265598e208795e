import type { ReceiverAnswer } from "../domain/webhooks/receiver-answers.ts";
import type { CompletionRecord } from "./query-store.ts";

/** Name of a derived secret. */
export interface SecretName {
  readonly subscriberId: string;
  readonly generation: number;
}

/** The secret text for a person, and the id by which a node recognises that it can derive it. */
export interface WebhookSecret {
  readonly secret: string;
  readonly secretId: string;
}

/** An event for a receiver. All but "completion" are about the feed or the subscriber itself. */
export type WebhookEvent =
  | { readonly kind: "completion"; readonly completion: CompletionRecord }
  | { readonly kind: "epoch.changed"; readonly epoch: number; readonly resumeAfter: number }
  | { readonly kind: "feed.truncated"; readonly after: number; readonly resumeAfter: number }
  | { readonly kind: "test"; readonly name: string };

export interface WebhookMessage {
  readonly url: string;
  readonly subscriberId: string;
  /** Generations of the secret that sign, the newest first. */
  readonly generations: readonly number[];
  /** Part of the message's id after the subscriber's: the same for every delivery of the event. */
  readonly eventId: string;
  readonly event: WebhookEvent;
  readonly signal?: AbortSignal;
}

/** Signs events and posts them to receivers (Standard Webhooks). */
export interface WebhookSender {
  /** Derives a secret; null if this node shares no secret with the others, from which to derive it. */
  secretOf(name: SecretName): WebhookSecret | null;
  /** True if this node can derive the secret with this id. */
  canSign(name: SecretName, secretId: string): boolean;
  /** Posts an event once. Never rejects: a failure is an answer. */
  send(message: WebhookMessage): Promise<ReceiverAnswer>;
}

/** For a node that delivers nothing. */
export const noWebhooks: WebhookSender = {
  secretOf: () => null,
  canSign: () => false,
  send: async () => ({ kind: "silence", reason: "this node delivers no webhooks" }),
};
