import { afterEach, describe, expect, it } from "vitest";
import { LiveKeys } from "../../../src/application/live-keys.ts";
import { NO_QUOTAS } from "../../../src/domain/keys/principal.ts";
import type { KeyTerms } from "../../../src/ports/key-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { MemoryDatabase } from "../../doubles/memory-store.ts";

const TERMS: KeyTerms = { name: "shop", scopes: ["read"], signers: null, chains: [1], ...NO_QUOTAS };
const [FIRST, SECOND] = ["a".repeat(64), "b".repeat(64)] as const;
const ME = "operator:me";
const TRUSTED_MS = 10_000;
const A_SECOND_MS = 1_000;

function world() {
  const clock = createManualClock();
  const store = new MemoryDatabase(clock).connect();
  const keys = new LiveKeys({ clock, trustedMs: TRUSTED_MS, quotas: { ...NO_QUOTAS, createsPerSecond: 5 } });
  return { clock, store, keys };
}

let made: ReturnType<typeof world>;
afterEach(async () => {
  const stopped = made.keys.stop();
  await made.clock.advance(A_SECOND_MS);
  await stopped;
});

describe("API keys that a node reads from the database", () => {
  // protects [Attacks] src/application/live-keys.ts, src/main/service.ts
  it("cause UNAVAILABLE until the node has read them for the first time", async () => {
    made = world();
    const { clock, store, keys } = made;
    await store.addApiSecret(TERMS, FIRST, ME);
    const notYet = expect.objectContaining({ code: "UNAVAILABLE" });
    expect(() => keys.find(FIRST), "the database is not reached yet").toThrow(notYet);
    store.cut();
    keys.start(store);
    await clock.advance(A_SECOND_MS);
    for (const digest of [FIRST, SECOND]) expect(() => keys.find(digest), "it does not answer").toThrow(notYet);
    store.heal();
    await clock.advance(A_SECOND_MS);
    expect(keys.find(FIRST)).toMatchObject({ name: "shop" });
    expect(keys.find(SECOND)).toBeNull();
  });

  // protects [Attacks] src/application/live-keys.ts
  it("take effect within a second when they are added, rotated or revoked", async () => {
    made = world();
    const { clock, store, keys } = made;
    await store.addApiSecret(TERMS, FIRST, ME);
    keys.start(store);
    await clock.advance(A_SECOND_MS);
    const principal = keys.find(FIRST);
    const quotas = { ...NO_QUOTAS, createsPerSecond: 5 };
    expect(principal).toEqual({
      ...{ name: "shop", scopes: new Set(["read"]), signers: null, chains: new Set([1]) },
      ...quotas,
    });
    expect(keys.find(SECOND)).toBeNull();
    await store.addApiSecret(TERMS, SECOND, ME);
    await clock.advance(A_SECOND_MS);
    expect(keys.find(SECOND)).toEqual(principal);
    expect(keys.find(FIRST)).toBe(principal);
    await store.revokeApiKey("shop", FIRST.slice(0, 8));
    await clock.advance(A_SECOND_MS);
    expect(keys.find(FIRST)).toBeNull();
    await store.revokeApiKey("shop", null);
    await clock.advance(A_SECOND_MS);
    expect(keys.find(SECOND)).toBeNull();
  });

  it("use the node's default rate and queue share if they set none", async () => {
    made = world();
    const { clock, store, keys } = made;
    await store.addApiSecret({ ...TERMS, createsPerSecond: 2, queueShare: 0.1 }, FIRST, ME);
    await store.addApiSecret({ ...TERMS, name: "usual" }, SECOND, ME);
    keys.start(store);
    await clock.advance(A_SECOND_MS);
    expect(keys.find(FIRST)).toMatchObject({ createsPerSecond: 2, queueShare: 0.1 });
    expect(keys.find(SECOND)).toMatchObject({ createsPerSecond: 5, queueShare: null });
    await store.revokeApiKey("shop", null);
    await store.addApiSecret({ ...TERMS, createsPerSecond: 3 }, FIRST, ME);
    await clock.advance(A_SECOND_MS);
    expect(keys.find(FIRST)).toMatchObject({ createsPerSecond: 3, queueShare: null });
  });

  // protects [Attacks] src/application/live-keys.ts
  it("stay valid for one lease duration if the database is unavailable", async () => {
    made = world();
    const { clock, store, keys } = made;
    await store.addApiSecret(TERMS, FIRST, ME);
    keys.start(store);
    await clock.advance(A_SECOND_MS);
    store.cut();
    await clock.advance(TRUSTED_MS - A_SECOND_MS);
    expect(keys.find(FIRST)).not.toBeNull();
    await clock.advance(2 * A_SECOND_MS);
    expect(() => keys.find(FIRST)).toThrow("cannot be checked");
    expect(keys.find(SECOND)).toBeNull();
    store.heal();
    await clock.advance(A_SECOND_MS);
    expect(keys.find(FIRST)).not.toBeNull();
  });
});
