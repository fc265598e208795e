import { type Static, Type } from "typebox";
import { MOST_PER_SECOND, SCOPES } from "../../domain/keys/principal.ts";
import { Address, ChainId, STORY, Timestamp } from "../schemas/scalars.ts";
import { closed, list, nullable, object, oneOf, optional, query, text } from "../schemas/shapes.ts";
import { ADMIN, declared, ok } from "./call.ts";

/** API calls for keys that are managed while the nodes run. */

const Name = Type.String({
  pattern: "^[A-Za-z0-9_.-]{1,64}$",
  description: "Name of the API key, kept with everything that it asks for.",
  examples: ["checkout"],
});
const Scopes = list(oneOf(SCOPES), { minItems: 1, description: "Without any: read and submit." });
const SecretId = Type.String({
  pattern: "^[0-9a-f]{8,64}$",
  description: "The beginning of the secret's digest.",
  examples: ["5f1d7a84"],
});
const CreatesPerSecond = Type.Integer({
  minimum: 1,
  maximum: MOST_PER_SECOND,
  description: "On each node: creates, items of batches, reservations. Null: as the nodes are configured.",
  examples: [50],
});
const ReadsPerSecond = Type.Integer({
  minimum: 1,
  maximum: MOST_PER_SECOND,
  description: "On each node: questions that /rpc puts to a chain. Null: as the nodes are configured.",
  examples: [200],
});
const QueueShare = Type.Number({
  exclusiveMinimum: 0,
  maximum: 1,
  description: "The part of a lane's queue that it may fill. Null: as the nodes are configured.",
  examples: [0.25],
});
const terms = {
  name: Name,
  scopes: Scopes,
  signers: nullable(list(Address, "The only ones that it may see and use; null: all.")),
  chains: nullable(list(ChainId, "As signers.")),
  createsPerSecond: nullable(CreatesPerSecond),
  readsPerSecond: nullable(ReadsPerSecond),
  queueShare: nullable(QueueShare),
};

export const AddKey = closed(
  "AddKey",
  { examples: [{ name: "checkout", scopes: ["read", "submit"], signers: [STORY.signer] }] },
  {
    name: Name,
    ...optional({
      scopes: Scopes,
      signers: list(Address, {
        minItems: 1,
        description: "The only signers that it may see and use; without it, all.",
      }),
      chains: list(ChainId, { minItems: 1, description: "The only chains that it may see and use; without it, all." }),
      createsPerSecond: CreatesPerSecond,
      readsPerSecond: ReadsPerSecond,
      queueShare: QueueShare,
    }),
  },
);
export type AddKey = Static<typeof AddKey>;

export const NewKey = closed("NewKey", {
  ...terms,
  secret: text("Shown this once: the database has its digest alone.", "pZ3vX0c6JH2mSmVZ8kq1uYy4n7wE5rTb"),
  secretId: SecretId,
});
export type NewKey = Static<typeof NewKey>;

export const Keys = closed("Keys", {
  items: list(
    closed("Key", {
      ...terms,
      createdAt: Timestamp,
      secrets: list(object({ secretId: SecretId, createdAt: Timestamp })),
    }),
  ),
});
export type Keys = Static<typeof Keys>;

export const RevokedKey = closed("RevokedKey", { name: Name, secretId: nullable(SecretId) });
export type RevokedKey = Static<typeof RevokedKey>;

export const RevokeQuery = query({ secret: SecretId });

export const keys = declared({
  listKeys: {
    at: "get /api/v1/keys",
    scope: ADMIN,
    face: "keys",
    summary: "List the API keys of the database",
    answers: ok("Without their secrets.", Keys),
  },
  addKey: {
    at: "post /api/v1/keys",
    scope: ADMIN,
    face: "addKey",
    audited: true,
    summary: "Make an API key, or its second secret",
    description:
      "Of a key that exists on the same terms, a second secret: both are valid until one is revoked. Known to every node within a second.",
    body: AddKey,
    answers: { 201: { description: "The secret is told this once.", schema: NewKey } },
    noStore: true,
    errors: ["CONFLICT"],
  },
  revokeKey: {
    at: "delete /api/v1/keys/{name}",
    scope: ADMIN,
    face: "revokeKey",
    takes: ["name", "secret", "actor"],
    summary: "Revoke an API key, or one of its secrets",
    description: "Refused by every node within a second. Keys of the configuration are not among these.",
    query: RevokeQuery,
    answers: ok("Revoked: the secret, or all of it.", RevokedKey),
    errors: ["NOT_FOUND"],
  },
});
