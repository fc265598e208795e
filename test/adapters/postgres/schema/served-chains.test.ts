import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { migrate } from "../../../../src/adapters/postgres/schema/migrate.ts";
import { serveChains } from "../../../../src/adapters/postgres/schema/served-chains.ts";
import { createTestDatabase } from "../../../support/database.ts";
import { connect } from "../../../support/integration.ts";

const said = (chainId: number) => [{ chainId, named: false }];
const named = (chainId: number) => [{ chainId, named: true }];

let databaseUrl: string;
let drop: () => Promise<void>;
beforeEach(async () => {
  const database = await createTestDatabase();
  databaseUrl = database.url;
  drop = () => database.drop();
  await migrate({ databaseUrl });
});
afterEach(() => drop());

const serve = (...chains: Parameters<typeof serveChains>[1]) => serveChains({ databaseUrl }, chains);

describe("a chain id that only an endpoint reports", () => {
  // protects [Chains that differ] src/adapters/postgres/schema/served-chains.ts, src/main/node/serve-chains.ts, src/main/config/chains.ts
  it("is refused if the database already serves another chain", async () => {
    expect(await serve(...said(31_337))).toEqual({ kind: "served", adopted: [31_337] });
    expect(await serve(...said(31_337))).toEqual({ kind: "served", adopted: [] });
    expect(await serve(...said(1))).toEqual({ kind: "refused", chainIds: [1], served: [31_337] });
    expect(await serve(...said(1)), "a refusal keeps nothing").toMatchObject({ kind: "refused" });
  });

  it("is accepted once the operator has configured the chain", async () => {
    await serve(...said(31_337));
    expect(await serve(...named(1))).toEqual({ kind: "served", adopted: [] });
    expect(await serve(...said(1), ...said(31_337))).toEqual({ kind: "served", adopted: [] });
  });

  it("is refused if the operator has configured another chain", async () => {
    await serve(...named(31_337));
    expect(await serve(...said(31_337), ...said(1))).toMatchObject({ kind: "refused", chainIds: [1] });
  });

  // protects [Chains that differ] src/adapters/postgres/schema/served-chains.ts, src/main/node/serve-chains.ts, src/main/config/chains.ts
  it("is stored once if several nodes start at the same time", async () => {
    const servings = await Promise.all([31_337, 1, 31_337, 1, 31_337, 1].map((chainId) => serve(...said(chainId))));
    const adopted = servings.flatMap((serving) => (serving.kind === "served" ? serving.adopted : []));
    expect(adopted).toHaveLength(1);
    expect(servings.filter(({ kind }) => kind === "refused")).toHaveLength(3);
  });

  // protects [Chains that differ] src/adapters/postgres/schema/served-chains.ts, src/main/node/serve-chains.ts, src/main/config/chains.ts
  it("is accepted if lanes of that chain already exist", async () => {
    const database = connect(databaseUrl);
    await database.query(
      "INSERT INTO fencepost.lane (chain_id, signer) VALUES (31337, '0x00000000000000000000000000000000000000aa')",
    );
    await database.end();
    expect(await serve(...said(31_337))).toEqual({ kind: "served", adopted: [] });
    expect(await serve(...said(1))).toEqual({ kind: "refused", chainIds: [1], served: [31_337] });
  });
});
