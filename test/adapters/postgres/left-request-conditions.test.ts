/**
 * What a process leaves for the owner of a lane is begun once, answered by whoever began it, and withdrawn only where nobody
 * did. Each condition of those statements is taken away in turn: some case has to come out differently.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  answerRequest,
  beginRequests,
  leaveRequest,
  putBackRequest,
  readLeftRequests,
  withdrawRequest,
} from "../../../src/adapters/postgres/statements/left-request.ts";
import { mutantsOf } from "../../support/sql-mutants.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const [ASKED, OTHER, OWNER, TWIN] = [1, 2, 3, 4].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
const SIGNER = `0x${"a".repeat(40)}`;

/** What was asked for, and something else: for a while yet, of two lanes, and nobody has begun either. */
const WORLD = `
  INSERT INTO fencepost.left_request (left_id, chain_id, signer, action, body, repeatable, until)
  VALUES ('${ASKED}', 1, '${SIGNER}', 'act', '{}', false, now() + interval '1 minute'),
         ('${OTHER}', 2, '${SIGNER}', 'act', '{}', false, now() + interval '1 minute')`;

const where = (leftId: string | undefined, set: string) =>
  `UPDATE fencepost.left_request SET ${set} WHERE left_id = '${leftId}'`;
const BEGUN = where(ASKED, `begun_by = '${OWNER}'`);
const STATES: Readonly<Record<string, string>> = {
  "as it was left": "SELECT 1",
  "begun by the one that asks": BEGUN,
  "begun by another": where(ASKED, `begun_by = '${TWIN}'`),
  "begun, and the other one, too": `UPDATE fencepost.left_request SET begun_by = '${OWNER}'`,
  "begun and answered": `${BEGUN}; ${where(ASKED, "answer = '1'")}`,
  "answered and put back": where(ASKED, "answer = '1'"),
  "over a moment ago": where(ASKED, "until = now() - interval '1 second'"),
  "over long ago": where(ASKED, "until = now() - interval '11 minutes'"),
  "the only one": `DELETE FROM fencepost.left_request WHERE left_id = '${OTHER}'`,
  "the only one, and over": `DELETE FROM fencepost.left_request WHERE left_id = '${OTHER}'; ${where(ASKED, "until = now()")}`,
  "the only one, and answered": `DELETE FROM fencepost.left_request WHERE left_id = '${OTHER}'; ${where(ASKED, "answer = '1'")}`,
};

const SUBJECTS = [
  { statement: beginRequests, values: [[`1 ${SIGNER}`], OWNER, []] },
  { statement: beginRequests, values: [[`1 ${SIGNER}`, `2 ${SIGNER}`], OWNER, [ASKED]] },
  { statement: beginRequests, values: [[`1 ${SIGNER}`, `2 ${SIGNER}`], OWNER, []] },
  { statement: answerRequest, values: [ASKED, OWNER, '"done"'] },
  { statement: putBackRequest, values: [ASKED, OWNER] },
  { statement: withdrawRequest, values: [ASKED] },
  { statement: readLeftRequests, values: [[ASKED]] },
  { statement: leaveRequest, values: [TWIN, 1, SIGNER, "act", "{}", null, false, 1_000] },
];

let subject: PostgresSubject;
beforeAll(async () => {
  subject = await createPostgresSubject();
});
afterAll(() => subject.close());

/** What it answers, and what is left behind. */
async function sight(sql: string, values: readonly unknown[], state: string): Promise<string> {
  const { client } = subject;
  await client.query(`BEGIN; ${WORLD}; ${state}`);
  try {
    const { rows } = await client.query(sql, [...values]);
    const left = await client.query(
      "SELECT left_id, begun_by, answer FROM fencepost.left_request ORDER BY left_id, begun_by",
    );
    return JSON.stringify([rows, left.rows]);
  } finally {
    await client.query("ROLLBACK");
  }
}

async function sights(sql: string, values: readonly unknown[]): Promise<readonly string[]> {
  const seen: string[] = [];
  for (const state of Object.values(STATES)) seen.push(await sight(sql, values, state));
  return seen;
}

describe("what is left for the owner of a lane", () => {
  it("is decided by every condition of its statements", async () => {
    const idle = new Map<string, boolean>();
    for (const { statement, values } of SUBJECTS) {
      const usual = await sights(statement.sql, values);
      for (const mutant of mutantsOf(statement.sql)) {
        const name = `${statement.name}: ${mutant.without}`;
        const isFelt = `${await sights(mutant.sql, values)}` !== `${usual}`;
        idle.set(name, (idle.get(name) ?? true) && !isFelt);
      }
    }
    expect([...idle].flatMap(([name, isIdle]) => (isIdle ? name : []))).toEqual([]);
    expect(idle.size).toBeGreaterThan(12);
  });

  it.each([
    ["begun by another", "begun_by", TWIN],
    ["begun and answered", "answer", "1"],
  ])("%s, is neither withdrawn, answered nor put back by anybody else", async (state, column, value) => {
    const [change] = [STATES[state] as string];
    for (const { statement, values } of SUBJECTS.slice(3, 6)) {
      const [, left] = JSON.parse(await sight(statement.sql, values, change));
      expect(left[0], statement.name).toMatchObject({ left_id: ASKED, [column]: value });
    }
  });
});
