/**
 * Runs docs/operations/upgrade.md: under load, three nodes are replaced one by one by nodes of the next release, and
 * one is rolled back.
 */
import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { ROOT } from "../architecture/tree.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { type Database, it, QUICK } from "../support/integration.ts";
import { startLoad } from "../support/load.ts";
import { type FencepostProcess, type NodeProcess, nodeOnceReady, spawnScript } from "../support/node-process.ts";
import { PersistentCaller } from "../support/persistent-caller.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const MIGRATIONS = "dist/adapters/postgres/migrations";
const NEXT = "9001_next_release.sql";

/**
 * A copy of this package as a next release: another version, and one more migration with which the present release
 * still works.
 */
async function nextRelease(directory: string, newest: string): Promise<string> {
  const root = join(directory, "next");
  await mkdir(root);
  for (const part of ["bin", "dist"]) await cp(join(ROOT, part), join(root, part), { recursive: true });
  await symlink(join(ROOT, "node_modules"), join(root, "node_modules"));
  const manifest = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as { version: string };
  await writeFile(join(root, "package.json"), JSON.stringify({ ...manifest, version: "0.2.0-drill" }));
  const sql = `-- works with: ${newest}\nALTER TABLE fencepost.lane ADD COLUMN of_the_next_release text;\n`;
  await writeFile(join(root, MIGRATIONS, NEXT), sql);
  return root;
}

const versions = (database: Database) =>
  database
    .query<{ version: string }>("SELECT version FROM fencepost.node_instance WHERE NOT dead ORDER BY node_id")
    .then((rows) => rows.map(({ version }) => version));

describe("a rolling upgrade", () => {
  let directory: TemporaryDirectory;
  const started: FencepostProcess[] = [];

  beforeEach(async () => {
    directory = await makeTemporaryDirectory();
  });
  afterEach(async () => {
    for (const child of started) child.signal("SIGKILL");
    await Promise.all(started.splice(0).map((child) => child.exited));
    await directory.remove();
  });

  it("loses and duplicates no request under load", async ({ simulated, database }) => {
    const [newest] = await database.query<{ name: string }>(
      'SELECT max(name COLLATE "C") AS name FROM fencepost.migration',
    );
    const next = await nextRelease(directory.path, newest?.name ?? "");
    const start = async (root: string, name: string): Promise<NodeProcess> => {
      const variables = {
        ...QUICK,
        FENCEPOST_DATABASE_URL: database.url,
        FENCEPOST_RPC_URL: simulated.url,
        FENCEPOST_NODE_ID: name,
      };
      const child = spawnScript([join(root, "bin/fencepost.js"), "start"], { variables });
      started.push(child);
      return nodeOnceReady(child);
    };
    const names = ["a", "b", "c"];
    const serving = await Promise.all(names.map((name) => start(ROOT, name)));
    let turn = 0;
    const caller = new PersistentCaller(() => serving[turn++ % serving.length]?.client ?? null);
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 3, batch: 5 });
    const goesOn = () => {
      const before = load.accepted.length;
      return waitUntil(() => load.accepted.length > before + 30, "callers are served");
    };
    /**
     * Replaces a node as a load balancer does: the new node is ready before the old one leaves, and from then on the
     * old one gets no requests.
     */
    const replace = async (place: number, root: string): Promise<void> => {
      const old = serving[place] as NodeProcess;
      serving[place] = await start(root, names[place] ?? "");
      await goesOn();
      old.signal("SIGTERM");
      expect(await old.exited).toEqual({ code: 0, signal: null });
      await goesOn();
    };
    await goesOn();
    const [present] = await versions(database);
    await replace(0, next);
    expect(await database.query(`SELECT 1 AS there FROM fencepost.migration WHERE name = '${NEXT}'`)).toHaveLength(1);
    expect(await versions(database), "two releases at work").toEqual(["0.2.0-drill", present, present]);
    await replace(1, next);
    await replace(2, next);
    await replace(1, ROOT);
    expect(await versions(database)).toEqual(["0.2.0-drill", present, "0.2.0-drill"]);
    await load.stop();
    await untilSettled(database, load.accepted.length, { giveUpMs: 60_000 });
    const witnessed = simulated.chain.witness.map(({ hash }) => hash);
    await audit({ database, rpcUrl: simulated.url, witnessed });
    expect(caller.refusals.map(({ code }) => code).filter((code) => !/^UN(AVAILABLE|REACHABLE)$/.test(code))).toEqual(
      [],
    );
  });
});
