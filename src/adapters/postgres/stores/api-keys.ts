/** Implements KeyStore on PostgreSQL: each change is one statement, which also records who made it. */
import { grouped } from "../../../domain/grouped.ts";
import type { KeyRecord, KeyStore } from "../../../ports/key-store.ts";
import { ask } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import { type ApiKeyRow, deleteApiKey, insertApiSecret, readApiKeys } from "../statements/api-key.ts";
import { writeRows } from "./leases.ts";

export function keysIn(runtime: DurableRuntime): KeyStore {
  return {
    async apiKeys() {
      const rows = await ask(runtime.connections, readApiKeys());
      return [...grouped(rows, ({ name }) => name).values()].map(keyOf);
    },
    async addApiSecret({ name, scopes, signers, chains, ...quotas }, digest, actor) {
      const { createsPerSecond, readsPerSecond, queueShare } = quotas;
      const terms = [name, scopes, signers, chains, createsPerSecond, readsPerSecond, queueShare];
      // Retry at most twice: each retry means that another request has taken a slot for a secret, and an API key has
      // two slots.
      for (let slots = 2; slots >= 0; slots--) {
        const [row] = await writeRows(runtime, insertApiSecret(...terms, digest, actor));
        if (row?.result !== "again") return row?.result ?? "differs";
      }
      return "full";
    },
    revokeApiKey: async (...revoked) => (await writeRows(runtime, deleteApiKey(...revoked))).length > 0,
  };
}

function keyOf(rows: readonly ApiKeyRow[]): KeyRecord {
  const [{ digest: _, secretCreatedAt: __, ...key }] = rows as readonly [ApiKeyRow];
  const secrets = rows.flatMap(({ digest, secretCreatedAt: createdAt }) => {
    return digest === null || createdAt === null ? [] : [{ digest, createdAt }];
  });
  return { ...key, secrets };
}
