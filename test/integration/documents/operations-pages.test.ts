/**
 * Runs the shell blocks of the pages about roles, upgrades, backup and restore as one sequence on PostgreSQL 15: `npm
 * run test:docs`.
 */
import { join } from "node:path";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../../src/client/index.ts";
import { freePort } from "../../../src/main/dev/embedded/loopback-port.ts";
import type { EmbeddedPostgres } from "../../../src/main/dev/embedded/postgres.ts";
import { blocksOf } from "../../architecture/rules/vocabulary.ts";
import { ROOT, readText } from "../../architecture/tree.ts";
import { NO_POSTGRES_15 } from "../../support/drill-scripts.ts";
import { connect } from "../../support/integration.ts";
import { POSTGRES_15, startPostgres15 } from "../../support/postgres-15.ts";
import { type Place, runPrinted, shellBlocks, startPrinted } from "../../support/printed-shell.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";
import { waitUntil } from "../../support/wait-until.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
/** The publicly known key of the account that the pages use. */
const KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

describe("the commands in the documentation pages about the database", () => {
  let server: EmbeddedPostgres | null;
  let stack: Stack;
  let backups: TemporaryDirectory;
  let port: number;

  beforeAll(async () => {
    server = await startPostgres15();
    stack = await startFencepost();
    backups = await makeTemporaryDirectory();
    port = await freePort();
    if (server === null) return;
    const admin = connect(server.url);
    await admin.query(
      "CREATE ROLE owner LOGIN PASSWORD 'p'; CREATE ROLE runner LOGIN PASSWORD 'p'; CREATE ROLE reader LOGIN PASSWORD 'p' IN ROLE pg_read_all_data",
    );
    await admin.query("CREATE DATABASE app OWNER owner");
    await admin.end();
  }, 120_000);
  afterAll(async () => {
    await stack?.stop();
    await server?.stop();
    await backups?.remove();
  });

  const place = (): Place => ({
    variables: {
      PATH: `${join(POSTGRES_15, "bin")}:${process.env.PATH}`,
      PGPASSWORD: "p",
      FENCEPOST_PORT: String(port),
      FENCEPOST_RPC_URL: stack.rpcUrl,
      FENCEPOST_PRIVATE_KEYS: KEY,
      FENCEPOST_CONFIRMATIONS: "1",
      FENCEPOST_AUTH: "none",
    },
    instead: {
      "@db.internal": `@${new URL(server?.url ?? "").host}`,
      "/backups/": `${backups.path}/`,
      "deploy/drills/": join(ROOT, "deploy/drills/"),
    },
  });

  it("work as printed, if the pages are followed in order", { timeout: 120_000 }, async ({ skip }) => {
    skip(server === null, NO_POSTGRES_15);
    const [roles = ""] = shellBlocks("docs/operations/README.md");
    const [migrate = "", start = ""] = roles.split("\n");
    await runPrinted(migrate, place());
    const client = createClient({ url: `http://127.0.0.1:${port}`, repeat: false });
    const pay = async (requestId: string) =>
      client.waitFor((await client.send({ signer: SIGNER, requestId, payload: { to: SIGNER, value: "1" } })).txId);
    const running = async (work: () => Promise<void>, line = start) => {
      const node = await startPrinted(line.replace("fencepost start", "exec fencepost start"), place());
      await node.ready;
      await work();
      node.signal("SIGTERM");
      expect(await node.exited).toMatchObject({ code: 0 });
    };

    await running(async () => {
      expect(await pay("kept")).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    });
    await runPrinted(shellBlocks("docs/operations/upgrade.md").join("\n"), place());
    expect(await runPrinted(shellBlocks("docs/operations/backup.md").join("\n"), place())).toContain("kept ");
    await running(async () => {
      expect(await pay("lost")).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    });
    const ofRetention = "docs/operations/retention.md";
    const [keep = ""] = shellBlocks(ofRetention);
    const asRunner = "export FENCEPOST_DATABASE_URL=postgres://runner@db.internal/app";
    await running(async () => {
      expect((await client.list({})).items).toHaveLength(2);
    }, `${asRunner}\n${keep}`);
    const [copy = ""] = blocksOf(readText(ofRetention), "sql");
    // Both transactions are still watched for a reorg, so nothing is archived yet; the query must still name only
    // existing columns.
    const archive = `psql postgres://reader@db.internal/app --command "${copy.trim()}"`;
    expect(await runPrinted(archive, place())).toMatch(/^tx_id,.*,gas_used\n$/);

    const [restore = "", afterwards = "", look = "", resume = ""] = shellBlocks("docs/operations/restore.md");
    const restored = `export GRANT=runner\n${restore}\n${afterwards.trim()} --grant runner`;
    expect(await runPrinted(restored, place())).toContain("1 transactions are not in the dump");
    await running(async () => {
      const seen = () => runPrinted(`${look.trim()} --json`, place());
      await waitUntil(async () => /"suspendedBy": ?"HISTORY"/.test(await seen()), "the lane waits");
      await runPrinted(resume, place());
      const again = await waitUntil(() => pay("new").catch(() => null), "it goes on");
      expect(again).toMatchObject({ state: "CONFIRMED", nonce: 2 });
    });
  });
});
