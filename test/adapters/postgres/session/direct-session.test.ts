import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DirectSession } from "../../../../src/adapters/postgres/session/direct-session.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { createEntropy } from "../../../../src/adapters/system/entropy.ts";
import { TcpProxy } from "../../../support/tcp-proxy.ts";
import { waitUntil } from "../../../support/wait-until.ts";
import { createPostgresSubject } from "../postgres-subject.ts";

const NAME = "session under test";
const SESSIONS = `SELECT 1 FROM pg_stat_activity WHERE application_name = '${NAME}' AND datname = current_database()`;

let subject: Awaited<ReturnType<typeof createPostgresSubject>>;
let wire: TcpProxy;
let events: string[];
beforeEach(async () => {
  subject = await createPostgresSubject();
  wire = await TcpProxy.start(Number(new URL(subject.url).port));
  events = [];
});
afterEach(async () => {
  await wire.close();
  await subject.close();
});

function open(directUrl: string): DirectSession {
  return new DirectSession(
    { directUrl, clock: systemClock, entropy: createEntropy(systemClock) },
    {
      name: NAME,
      reconnect: { firstMs: 10, mostMs: 10 },
      begun: async (client) => {
        await client.query("SELECT 'the first question'");
        events.push("begun");
      },
      lost: () => events.push("lost"),
      pooled: () => events.push("pooled"),
    },
  );
}

const sessions = async () => (await subject.client.query(SESSIONS)).rows.length;
const noneIsLeft = () => waitUntil(async () => (await sessions()) === 0, "the server has no session of it");

describe("closing a direct PostgreSQL session leaves no session on the server", () => {
  // protects [Short of time] src/adapters/postgres/session/direct-session.ts
  it("right after it was opened", async () => {
    await open(subject.url).close();
    await noneIsLeft();
    expect(events).toEqual([]);
  });

  // protects [Short of time] src/adapters/postgres/session/direct-session.ts
  it("before the server has answered the connection request", async () => {
    wire.freeze();
    const session = open(wire.through(subject.url));
    await waitUntil(() => wire.connections > 0, "it is connecting");
    const closing = session.close();
    wire.thaw();
    await closing;
    await noneIsLeft();
    expect(events).toEqual([]);
  });

  it.each(["pg_backend_pid", "the first question"])(
    // protects [Short of time] src/adapters/postgres/session/direct-session.ts
    "while the server owes the answer to %s",
    async (question) => {
      const asked = wire.holdAt(question);
      const session = open(wire.through(subject.url));
      const release = await asked;
      expect(await sessions()).toBe(1);
      const closing = session.close();
      release();
      await closing;
      await noneIsLeft();
      expect(events).toEqual([]);
    },
  );

  it("after it has started", async () => {
    const session = open(subject.url);
    await waitUntil(() => events.includes("begun"), "it has begun");
    await session.close();
    await noneIsLeft();
    expect(events).toEqual(["begun", "lost"]);
  });
});
