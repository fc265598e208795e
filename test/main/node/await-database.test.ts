import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import { isDatabaseAway } from "../../../src/adapters/postgres/session/is-away.ts";
import { awaitDatabase } from "../../../src/main/node/await-database.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";

const sql = (code: string, message = "no") => Object.assign(new pg.DatabaseError(message, 0, "error"), { code });
const node = (code: string, message = code) => Object.assign(new Error(message), { code });
const REFUSED = node("ECONNREFUSED", "connect ECONNREFUSED 127.0.0.1:5432");
const WRONG_PASSWORD = sql("28P01", "password authentication failed");

// protects [Explained, and said aloud] src/main/node/compose-node.ts, src/application/lane/lanes.ts, src/adapters/postgres/session/is-away.ts
describe("a starting node waits for its database if", () => {
  it.each<[string, Error]>([
    ["nothing listens", REFUSED],
    ["nothing listens at any of its addresses", new AggregateError([REFUSED, node("ECONNREFUSED")])],
    ["the connection is reset", node("ECONNRESET")],
    ["the host is silent", node("ETIMEDOUT")],
    ["the connection attempt times out in the client", new Error("timeout expired")],
    ["no connection is made in time", new Error("Connection terminated due to connection timeout")],
    ["the host name is unknown", node("ENOTFOUND")],
    ["names cannot be resolved", node("EAI_AGAIN")],
    ["its socket does not exist yet", node("ENOENT")],
    ["it starts", sql("57P03", "the database system is starting up")],
    ["it is shut down", sql("57P01")],
    ["it has no free connection", sql("53300", "sorry, too many clients already")],
    ["a pooler cannot reach it", sql("08P01", "server login has been failing, cached error: connect failed")],
    ["it ends an idle transaction", sql("25P03")],
    [
      "the store's first transaction had too little time",
      new StoreUnavailable("x", { cause: sql("57014"), busy: true }),
    ],
    ["it is unknown whether the store's first transaction was committed", new OutcomeUnknown("the connection ended")],
    ["the store wraps one of these errors", new StoreUnavailable("no connection: x", { cause: REFUSED })],
  ])("%s", (_, error) => {
    expect(isDatabaseAway(error)).toBe(true);
  });
});

// protects [Explained, and said aloud] src/main/node/compose-node.ts, src/application/lane/lanes.ts, src/adapters/postgres/session/is-away.ts
describe("a starting node does not wait for its database after", () => {
  it.each<[string, unknown]>([
    ["a wrong password", WRONG_PASSWORD],
    ["a user without permission to connect", sql("28000")],
    ["a database that does not exist", sql("3D000")],
    ["a missing right", sql("42501")],
    ["a pooler that knows no such user", sql("08P01", "no such user")],
    ["a certificate that is not trusted", node("SELF_SIGNED_CERT_IN_CHAIN")],
    ["one address of several that answers with a refusal", new AggregateError([REFUSED, WRONG_PASSWORD])],
    ["a statement of a migration that takes longer than the role may", sql("57014")],
    ["a migration that takes longer than the role's transactions may", sql("25P04")],
    ["a schema that is too new", new Error("the database has migration 0042")],
    ["no error at all", "ECONNREFUSED"],
  ])("%s", (_, error) => {
    expect(isDatabaseAway(error)).toBe(false);
  });
});

describe("a node that waits for its database", () => {
  function patience() {
    const clock = createManualClock();
    const stop = new AbortController();
    const said: string[] = [];
    const say = (line: string, reason?: string) => void said.push(reason === undefined ? line : `${line} (${reason})`);
    return { clock, stop, said, patience: { clock, signal: stop.signal, say } };
  }

  // protects [Explained, and said aloud] src/main/node/await-database.ts, src/adapters/postgres/session/is-away.ts
  it("logs the begin and the end of the wait", async () => {
    const { clock, said, patience: own } = patience();
    let tries = 0;
    const opened = awaitDatabase(async () => {
      if (++tries <= 20) throw REFUSED;
      return "open";
    }, own);
    await clock.runUntilIdle();
    expect(await opened).toBe("open");
    expect(said).toEqual([
      "the database does not answer; waiting for it (connect ECONNREFUSED 127.0.0.1:5432)",
      "the database answers",
    ]);
  });

  it("logs nothing if the database answers at once", async () => {
    const { said, patience: own } = patience();
    expect(await awaitDatabase(() => Promise.resolve(7), own)).toBe(7);
    expect(said).toEqual([]);
  });

  it("backs off up to five seconds between two attempts", async () => {
    const { clock, stop, patience: own } = patience();
    const work = vi.fn(() => Promise.reject(REFUSED));
    const waiting = awaitDatabase(work, own).catch(() => "stopped");
    await clock.advance(60_000);
    const before = work.mock.calls.length;
    expect(before).toBeLessThan(20);
    await clock.advance(5_000);
    expect(work.mock.calls.length).toBeGreaterThan(before);
    stop.abort();
    expect(await waiting).toBe("stopped");
  });

  // protects [Explained, and said aloud] src/main/node/await-database.ts, src/adapters/postgres/session/is-away.ts
  it("fails at once with an error that waiting cannot repair", async () => {
    const { clock, patience: own } = patience();
    const answers = [REFUSED, REFUSED, WRONG_PASSWORD];
    const failed = awaitDatabase(() => Promise.reject(answers.shift()), own).catch((error: unknown) => error);
    await clock.runUntilIdle();
    expect(await failed).toBe(WRONG_PASSWORD);
  });

  it("stops at its abort signal", async () => {
    const { clock, stop, patience: own } = patience();
    const waiting = awaitDatabase(() => Promise.reject(REFUSED), own).catch(() => "stopped");
    await clock.advance(1_000);
    stop.abort(new Error("stopped by SIGTERM"));
    expect(await waiting).toBe("stopped");
    expect(clock.armedTimers).toBe(0);
  });
});
