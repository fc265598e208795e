import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NO_QUOTAS } from "../../src/domain/keys/principal.ts";
import type { KeyTerms } from "../../src/ports/key-store.ts";
import type { Store, StoreSubject } from "./store-subject.ts";

const digestOf = (letter: string) => letter.repeat(64);
const key = (name: string, wishes: Partial<KeyTerms> = {}): KeyTerms => ({
  ...{ name, scopes: ["read", "submit"], signers: null, chains: null, ...NO_QUOTAS },
  ...wishes,
});

/**
 * The contract of every key store: an API key has at most two secrets, and keeps the scopes, limits and quotas that it
 * was created with.
 */
export function keyStoreContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`KeyStore contract: ${name}`, () => {
    let subject: StoreSubject;
    let store: Store;
    beforeAll(async () => {
      subject = await create();
      store = await subject.connect();
    });
    afterAll(() => subject.close());
    const named = async (wanted: string) => (await store.apiKeys()).find((each) => each.name === wanted);

    it("stores a key with scopes, limits, quotas and the digests of the key's secrets", async () => {
      const limits = { signers: [`0x${"ab".repeat(20)}`, `0x${"cd".repeat(20)}`], chains: [1, 10] } as const;
      const quotas = { createsPerSecond: 50, readsPerSecond: 200, queueShare: 0.1234 };
      const limited = key("limited", { scopes: ["read", "operate"], ...limits, ...quotas });
      expect(await store.addApiSecret(limited, digestOf("a"), "operator:me")).toBe("added");
      expect(await store.addApiSecret(limited, digestOf("b"), "operator:me")).toBe("added");
      const found = await named("limited");
      expect(found).toMatchObject(limited);
      expect(found?.secrets.map(({ digest }) => digest)).toEqual([digestOf("a"), digestOf("b")]);
      expect(found?.createdAt).toBeInstanceOf(Date);
    });

    it("accepts no third secret for a key", async () => {
      for (const letter of ["c", "d"]) await store.addApiSecret(key("two"), digestOf(letter), "operator:me");
      expect(await store.addApiSecret(key("two"), digestOf("e"), "operator:me")).toBe("full");
      for (const other of [
        { scopes: ["read", "submit", "admin"] },
        { createsPerSecond: 1 },
        { readsPerSecond: 1 },
        { queueShare: 0.5 },
      ]) {
        const mightier = key("two", other as Partial<KeyTerms>);
        expect(await store.addApiSecret(mightier, digestOf("e"), "operator:me")).toBe("differs");
      }
      expect(await named("two")).toMatchObject({ scopes: ["read", "submit"], secrets: [{}, {}] });
    });

    // protects [Attacks] src/adapters/postgres/statements/api-key.ts, src/adapters/postgres/stores/api-keys.ts
    it("adds exactly two secrets if many are requested at the same time", async () => {
      for (const name of ["crowd-1", "crowd-2", "crowd-3"]) {
        const asked = ["4", "5", "6", "7"].map((letter) => {
          return store.addApiSecret(key(name), `${name.slice(-1)}${letter}`.repeat(32), "operator:me");
        });
        expect((await Promise.all(asked)).sort()).toEqual(["added", "added", "full", "full"]);
        expect((await named(name))?.secrets).toHaveLength(2);
      }
    });

    it("revokes a whole key or a single secret of a key", async () => {
      for (const letter of ["1", "2"]) await store.addApiSecret(key("gone"), digestOf(letter), "operator:me");
      expect(await store.revokeApiKey("gone", digestOf("1").slice(0, 8), "operator:me")).toBe(true);
      expect(await store.revokeApiKey("gone", digestOf("1").slice(0, 8), "operator:me")).toBe(false);
      expect(await named("gone")).toMatchObject({ secrets: [{ digest: digestOf("2") }] });
      expect(await store.addApiSecret(key("gone"), digestOf("3"), "operator:me")).toBe("added");
      expect(await store.revokeApiKey("gone", null, "operator:me")).toBe(true);
      expect(await named("gone")).toBeUndefined();
      expect(await store.revokeApiKey("gone", null, "operator:me")).toBe(false);
    });
  });
}
