/** A standby database is promoted while nodes keep running. */
import { describe, expect } from "vitest";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { audit, untilSettled } from "../../support/audit.ts";
import { crowding } from "../../support/crowding.ts";
import { it as base, connect, type Database, SHORT_LEASE } from "../../support/integration.ts";
import { startLoad } from "../../support/load.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { type ReplicatedPostgres, startReplicatedPostgres } from "../../support/replicated-postgres.ts";
import { pricedTransfer, range } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

interface Fixtures {
  readonly synchronous: boolean;
  readonly postgres: ReplicatedPostgres;
  readonly database: Database;
}

const it = base.extend<Fixtures>({
  synchronous: true,
  postgres: async ({ synchronous }, use) => {
    const postgres = await startReplicatedPostgres({ synchronous });
    await use(postgres);
    await postgres.remove();
  },
  database: async ({ postgres }, use) => {
    const database = connect(postgres.url);
    await use(database);
    await database.end();
  },
});

const PATIENT = { everyMs: 20, giveUpMs: 30_000 };

const epochs = (database: Database) =>
  database.query<{ epoch: number; may_have_lost: boolean }>(
    "SELECT epoch, may_have_lost FROM fencepost.database_history ORDER BY ordinal",
  );

const feed = (url: string, query: string) => fetch(`${url}/api/v1/tx/completions?${query}`);

describe("a failover to a synchronous standby", () => {
  it("loses no acknowledged create under load", async ({ postgres, database, simulated, nodes }) => {
    const settings = { ...SHORT_LEASE, FENCEPOST_IN_FLIGHT_WINDOW: "512" };
    const first = await nodes.start(simulated.url, settings);
    const second = await nodes.start(simulated.url, settings);
    let turn = 0;
    const caller = new PersistentCaller(() => (turn++ % 2 === 0 ? first : second).client);
    const load = startLoad({ caller, request: (index) => pricedTransfer(index), workers: 4, batch: 5 });
    await waitUntil(() => load.accepted.length > 100, "the load is in full swing");
    const before = (await (await feed(first.url, "after=0&limit=1")).json()) as { epoch: number };

    await postgres.failOver();
    const backMs = systemClock.monotonicMs();
    const answered = load.accepted.length;
    await waitUntil(() => load.accepted.length > answered + 20, "accepting again, without a restart", PATIENT);
    expect(systemClock.monotonicMs() - backMs, "soon after").toBeLessThan(10_000 * crowding());
    await load.stop();

    expect(await epochs(database)).toEqual([
      { epoch: before.epoch, may_have_lost: false },
      { epoch: before.epoch + 1, may_have_lost: false },
    ]);
    const stale = await feed(second.url, `after=1&epoch=${before.epoch}`);
    expect(stale.status).toBe(409);
    expect(await stale.json()).toMatchObject({ code: "EPOCH_CHANGED", epoch: before.epoch + 1, resumeAfter: 1 });
    const codes = new Set(caller.refusals.map(({ status, code }) => `${status} ${code}`));
    expect([...codes].filter((code) => !/^(0 UNREACHABLE|503 UNAVAILABLE|409 NOT_LEADER)$/.test(code))).toEqual([]);

    const count = load.accepted.length;
    await untilSettled(database, count);
    const witnessed = simulated.chain.witness.map(({ hash }) => hash);
    const { stored } = await audit({ database, rpcUrl: simulated.url, witnessed });
    const byId = new Map(stored.map((row) => [row.tx_id, row]));
    for (const { txId, nonce, requestId } of load.accepted) {
      expect(byId.get(txId)).toMatchObject({ nonce: String(nonce), request_id: requestId });
    }
    expect(first.stdout() + first.stderr()).toContain("DATABASE_HISTORY_CHANGED");
  });
});

describe("a failover to an asynchronous standby", () => {
  it.scoped({ synchronous: false });

  it("that lacks commits stops the lanes until an operator resumes them", async ({
    postgres,
    database,
    simulated,
    nodes,
  }) => {
    const node = await nodes.start(simulated.url, SHORT_LEASE);
    const kept = await node.client.sendBatch(range(3).map((index) => pricedTransfer(index)));
    await untilSettled(database, 3);
    await postgres.partStandby();
    const lost = await node.client.sendBatch(range(2).map((index) => pricedTransfer(3 + index)));
    expect([...kept, ...lost].map((answer) => "nonce" in answer && answer.nonce)).toEqual(range(5));
    await waitUntil(() => simulated.chain.witness.length === 5, "the network has all five");

    await postgres.failOver();
    await waitUntil(async () => (await epochs(database)).length === 2, "the node has noticed", PATIENT);
    expect((await epochs(database)).at(-1)).toMatchObject({ may_have_lost: true });
    const waiting = () =>
      database.query<{ next_nonce: string; suspended_by: string }>(
        "SELECT next_nonce, suspended_by FROM fencepost.lane WHERE reconciled_epoch = 2 AND next_nonce > 0",
      );
    const [lane] = await waitUntil(async () => ((await waiting()).length > 0 ? waiting() : null), "compared", PATIENT);
    expect(lane, "mined or pending, the chain counts five").toEqual({ next_nonce: "5", suspended_by: "HISTORY" });
    await expect(node.client.send(pricedTransfer(9))).rejects.toMatchObject({ status: 503, code: "UNAVAILABLE" });
    await waitUntil(
      () => (node.stdout() + node.stderr()).includes("LANE_AWAITS_OPERATOR"),
      "an alert asks for an operator",
    );
    expect(simulated.chain.witness, "nothing was sent").toHaveLength(5);

    node.signal("SIGKILL");
    await database.query("UPDATE fencepost.lane SET suspended = false, suspended_by = NULL");
    const heir = await nodes.start(simulated.url, SHORT_LEASE);
    const { nonce } = await new PersistentCaller(() => heir.client).send(pricedTransfer(9));
    expect(nonce).toBe(5);
    await untilSettled(database, 4);
  });
});
