import { AddKey, Keys, NewKey, RevokedKey, RevokeQuery } from "../keys.ts";
import { ADMIN, declared } from "./call.ts";

export const keys = declared({
  listKeys: {
    at: "get /api/v1/keys",
    scope: ADMIN,
    by: "any node",
    face: "keys",
    summary: "List the API keys of the database",
    answers: { 200: { description: "Without their secrets.", schema: Keys } },
  },
  addKey: {
    at: "post /api/v1/keys",
    scope: ADMIN,
    by: "any node",
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
    by: "any node",
    face: "revokeKey",
    takes: ["name", "secret", "actor"],
    summary: "Revoke an API key, or one of its secrets",
    description: "Refused by every node within a second. Keys of the configuration are not among these.",
    query: RevokeQuery,
    answers: { 200: { description: "Revoked: the secret, or all of it.", schema: RevokedKey } },
    errors: ["NOT_FOUND"],
  },
});
