import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Connections, type Session } from "../../../../src/adapters/postgres/session/connections.ts";
import { statement } from "../../../../src/adapters/postgres/statements/statement.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { createPostgresSubject, type PostgresSubject } from "../postgres-subject.ts";

const note = statement("note")`INSERT INTO noted (word) VALUES ($1)`;
const read = statement<{ word: string; place: number; none: null }>("read")`
  SELECT word, place::bigint, NULL AS none FROM noted ORDER BY place`;
const fail = statement("fail")`SELECT 1 / $1::integer`;

const KINDS = [
  { prepared: true, watched: true },
  { prepared: false, watched: true },
  { prepared: true, watched: false },
];

describe.each(KINDS)("pipelined statements (prepared: $prepared, one Sync: $watched)", ({ prepared, watched }) => {
  let subject: PostgresSubject;
  let connections: Connections;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    await subject.client.query("CREATE TABLE noted (word text, place serial)");
    connections = new Connections({
      databaseUrl: subject.url,
      clock: systemClock,
      max: 1,
      preparedStatements: prepared,
      schema: "fencepost",
      hasTransactionTimeout: watched,
      deadlineMs: 10_000,
    });
  });
  afterAll(async () => {
    await connections.close();
    await subject.close();
  });
  beforeEach(() => subject.client.query("TRUNCATE noted RESTART IDENTITY"));

  async function words(): Promise<readonly string[]> {
    return (await subject.client.query<{ word: string }>("SELECT word FROM noted ORDER BY place")).rows.map(
      ({ word }) => word,
    );
  }

  function backend(session: Session): number | null {
    return session.processId;
  }

  it("each get their own result", async () => {
    for (const word of ["a", "b", "c"]) {
      const answers = await connections.use((session) =>
        session.together(() =>
          Promise.all([
            session.control("BEGIN"),
            session.run(note(word)),
            session.run(read()),
            session.control("COMMIT"),
          ]),
        ),
      );
      expect(answers[0]).toBe("BEGIN");
      expect(answers[1]).toEqual([]);
      expect(answers[2].at(-1)).toEqual({ word, place: (await words()).length, none: null });
      expect(answers[3]).toBe("COMMIT");
    }
    expect(await words()).toEqual(["a", "b", "c"]);
  });

  it("are not executed after a failed statement", async () => {
    await connections.use((session) =>
      session.together(() => Promise.all([session.run(fail(1)), session.run(note("x"))])),
    );
    const answers = await connections.use((session) =>
      Promise.allSettled(
        session.together(() => [
          session.control("BEGIN"),
          session.run(note("before")),
          session.run(fail(0)),
          session.run(note("behind")),
          session.control("COMMIT"),
        ]),
      ),
    );
    const [, , failed, behind, committed] = answers;
    expect(failed).toMatchObject({ status: "rejected", reason: { code: "22012" } });
    expect(behind).toMatchObject({ status: "rejected", reason: { code: watched ? "22012" : "25P02" } });
    expect(committed).toEqual({ status: "fulfilled", value: "ROLLBACK" });
    expect(await words()).toEqual(["x"]);
  });

  it("leave the connection usable after a failure", async () => {
    const first = await connections.use(async (session) => {
      await session.run(note("kept"));
      await session.run(fail(1));
      const failed = session.together(() => [session.control("BEGIN"), session.run(fail(0))]);
      await Promise.allSettled(failed);
      expect(session.isInTransaction).toBe(false);
      expect((await session.run(read())).map(({ word }) => word)).toEqual(["kept"]);
      return backend(session);
    });
    expect(await connections.use(async (session) => backend(session))).toBe(first);
  });

  it("make the connection unusable if a new prepared statement fails", async () => {
    const unprepared = statement("unprepared")`SELECT 1 / $1::integer AS unprepared`;
    const first = await connections.use(async (session) => {
      await expect(session.run(unprepared(0))).rejects.toMatchObject({ code: "22012" });
      return backend(session);
    });
    const second = await connections.use(async (session) => {
      expect(await session.run(unprepared(1))).toEqual([{ unprepared: 1 }]);
      return backend(session);
    });
    expect(second === first).toBe(!prepared);
  });

  it("are not sent if a statement cannot be encoded", async () => {
    await connections.use(async (session) => {
      const answers = await Promise.allSettled(
        session.together(() => [
          session.control("BEGIN"),
          session.run(note("before")),
          session.run(note({ word: "x" })),
          session.control("COMMIT"),
        ]),
      );
      for (const answer of answers) {
        expect(answer).toMatchObject({
          status: "rejected",
          reason: { message: expect.stringContaining("a query parameter must be") },
        });
      }
      await expect(session.run(note({ word: "x" }))).rejects.toThrow("a query parameter must be");
      await session.run(note("after"));
    });
    expect(await words()).toEqual(["after"]);
  });

  it("pass on lists unchanged", async () => {
    const lists = statement<{ words: string[]; numbers: number[] }>("lists")`
  SELECT $1::text[] AS words, $2::integer[] AS numbers`;
    const words = ["a,b", 'say "x"', "back\\slash", "{}", "", "NULL", "é\n", null];
    const numbers = [1, -2, null];
    expect(await connections.use((session) => session.run(lists(words, numbers)))).toEqual([{ words, numbers }]);
    expect(await connections.use((session) => session.run(lists([], null)))).toEqual([{ words: [], numbers: null }]);
  });

  it("all fail if the connection fails", async () => {
    const answers = await connections.use((session) => {
      const sent = Promise.allSettled(session.together(() => [session.run(note("a")), session.control("COMMIT")]));
      session.destroy();
      return sent;
    });
    expect(answers.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  });
});
