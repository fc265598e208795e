import { describe, expect, it } from "vitest";
import { PostgresWakeUps } from "../../../../src/adapters/postgres/stores/wake-ups.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { createEntropy } from "../../../../src/adapters/system/entropy.ts";
import { WAKE_UPS } from "../../../../src/ports/wake-ups.ts";
import { wakeUpsContract } from "../../../contracts/wake-ups.contract.ts";
import { createTestDatabase } from "../../../support/database.ts";
import { recordTelemetry } from "../../../support/recorded-telemetry.ts";
import { waitUntil } from "../../../support/wait-until.ts";
import { connectClient } from "../postgres-subject.ts";

const LISTENING =
  "SELECT pid FROM pg_stat_activity WHERE application_name = 'fencepost wake-ups' AND datname = current_database()";

function open(directUrl: string, telemetry = recordTelemetry()): PostgresWakeUps {
  return new PostgresWakeUps({ directUrl, clock: systemClock, entropy: createEntropy(systemClock), telemetry });
}

/**
 * A new listener gets every kind of hint once, because it may have missed some. Resolves when all of them have arrived.
 */
async function listening(wakeUps: PostgresWakeUps): Promise<PostgresWakeUps> {
  const received = new Set<string>();
  wakeUps.listen((wakeUp) => received.add(wakeUp));
  await waitUntil(() => received.size === WAKE_UPS.length, "it listens");
  return wakeUps;
}

wakeUpsContract("PostgreSQL", async () => {
  const database = await createTestDatabase();
  const client = await connectClient(database.url);
  const pids = new Map<unknown, number>();
  const sessions = async () => (await client.query<{ pid: number }>(LISTENING)).rows.map(({ pid }) => pid);
  return {
    connect: async () => {
      const known = await sessions();
      const wakeUps = await listening(open(database.url));
      pids.set(wakeUps, (await sessions()).find((pid) => !known.includes(pid)) ?? 0);
      return wakeUps;
    },
    until: async (fact) => void (await waitUntil(fact, "the fact holds")),
    interrupt: async (wakeUps) => {
      await client.query("SELECT pg_terminate_backend($1)", [pids.get(wakeUps)]);
    },
    close: async () => {
      await client.end();
      await database.drop();
    },
  };
});

describe("hints between nodes over NOTIFY", () => {
  it("are merged into few notifications if the same hint is given many times", async () => {
    const database = await createTestDatabase();
    const client = await connectClient(database.url);
    const words: (string | undefined)[] = [];
    client.on("notification", ({ payload }) => words.push(payload));
    await client.query("LISTEN fencepost");
    const wakeUps = await listening(open(database.url));
    for (let i = 0; i < 10_000; i++) wakeUps.notify(i % 2 === 0 ? "completions" : "lanes");
    await wakeUps.close();
    await client.query("SELECT 1");
    expect(words).toEqual(["completions lanes"]);
    await client.end();
    await database.drop();
  });

  it("are dropped if no server answers, and closing does not wait", async () => {
    const wakeUps = open("postgres://nobody@127.0.0.1:1/none");
    wakeUps.notify("lanes");
    await wakeUps.close();
  });
});
