/**
 * A short restore drill on the test run's own server. `npm run test:drills` runs the drills that use PostgreSQL's own
 * tools.
 */
import { Client } from "pg";
import { describe, expect, inject } from "vitest";
import { type Database, it, KEYS, SIGNER } from "../support/integration.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const nameOf = ({ url }: Database) => new URL(url).pathname.slice(1);

/**
 * Runs statements while connected to another database: a database with connections can be neither copied nor replaced.
 */
async function asAdmin(...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: inject("postgres").adminUrl });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

const copy = (from: string, to: string) => [
  `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${from}'`,
  `CREATE DATABASE ${to} TEMPLATE ${from}`,
];

const ONE_KEY = { FENCEPOST_PRIVATE_KEYS: KEYS[0] };

describe("a database that was restored while no node ran", () => {
  // protects [A restored database] src/adapters/postgres/session/judge-history.ts, src/adapters/postgres/statements/database.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("assigns no nonce until an operator resumes the lanes", async ({ database, simulated, nodes }) => {
    const name = nameOf(database);
    const run = async (work: (node: Awaited<ReturnType<typeof nodes.start>>) => Promise<void>) => {
      const node = await nodes.start(simulated.url, ONE_KEY);
      await work(node);
      node.signal("SIGTERM");
      expect(await node.exited).toMatchObject({ code: 0 });
    };
    const confirm = async (node: Awaited<ReturnType<typeof nodes.start>>, index: number) =>
      (await node.client.waitFor((await node.client.send(pricedTransfer(index))).txId)).state;

    await run(async (node) => expect(await confirm(node, 0)).toBe("CONFIRMED"));
    await asAdmin(...copy(name, `${name}_backup`));
    await run(async (node) => {
      expect(await confirm(node, 1), "which the backup does not have").toBe("CONFIRMED");
      expect(await confirm(node, 2)).toBe("CONFIRMED");
    });
    await asAdmin(`DROP DATABASE ${name} WITH (FORCE)`, `ALTER DATABASE ${name}_backup RENAME TO ${name}`);

    const node = await nodes.start(simulated.url, ONE_KEY);
    const lane = () => node.client.signer(SIGNER).then(([only]) => only);
    await waitUntil(async () => (await lane())?.cursor === 3, "the lane was compared with the chain");
    expect(await lane()).toMatchObject({ suspendedBy: "HISTORY" });
    expect(node.stderr() + node.stdout()).toContain("COMMITS_MAY_BE_LOST");
    await expect(node.client.send(pricedTransfer(1)), "a repeat of what was lost").rejects.toMatchObject({
      status: 503,
      code: "UNAVAILABLE",
    });
    expect(await node.client.send(pricedTransfer(0)), "a repeat of what was kept").toMatchObject({ nonce: 0 });
    expect(simulated.chain.witness, "nothing was sent").toHaveLength(3);

    await node.client.resume(SIGNER, { reason: "the drill: what was lost is known" });
    const { txId, nonce } = await waitUntil(
      () => node.client.send(pricedTransfer(3)).catch(() => null),
      "the lane gives nonces again",
    );
    expect(nonce).toBe(3);
    expect(await node.client.waitFor(txId)).toMatchObject({ state: "CONFIRMED" });
    expect(new Set(simulated.chain.witness.map(({ hash }) => hash)).size, "one payload for each nonce").toBe(4);
  });
});
