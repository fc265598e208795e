import { describe, expect, inject, test } from "vitest";
import { createTestDatabase } from "./database.ts";
import { query } from "./query.ts";

describe("a test database", () => {
  test("has the schema, and shares nothing with other test databases", async () => {
    const [one, two] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    expect(await query(one.url, "SELECT count(*) > 0 AS migrated FROM fencepost.migration")).toEqual([
      { migrated: true },
    ]);
    await query(one.url, "CREATE TABLE mine ()");
    expect(await query(two.url, "SELECT to_regclass('mine') AS mine")).toEqual([{ mine: null }]);
    await Promise.all([one.drop(), two.drop()]);
  });

  test("can be created many times at once, from a template that accepts no connections", async () => {
    const { adminUrl, template } = inject("postgres");
    const all = await Promise.all(Array.from({ length: 6 }, createTestDatabase));
    expect(new Set(all.map(({ url }) => url)).size).toBe(6);
    const url = new URL(adminUrl);
    url.pathname = `/${template}`;
    await expect(query(url.href, "SELECT 1")).rejects.toThrow(/not currently accepting connections/);
    await Promise.all(all.map((database) => database.drop()));
  });

  test("is dropped even if a client is still connected", async () => {
    const database = await createTestDatabase();
    const lingering = query(database.url, "SELECT pg_sleep(600)");
    const cut = expect(lingering).rejects.toThrow();
    await database.drop();
    await cut;
    await database.drop();
    await expect(query(database.url, "SELECT 1")).rejects.toThrow(/does not exist/);
  });
});
