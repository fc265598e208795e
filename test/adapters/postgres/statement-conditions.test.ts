/**
 * Tests statements that the fencing token does not protect and that decide about money or about work that may happen at
 * most once. If any one of their conditions is removed, a test must fail.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { intentRow } from "../../../src/adapters/postgres/rows/transaction-fields.ts";
import { findActionKeys } from "../../../src/adapters/postgres/statements/action-key.ts";
import { declineIntents } from "../../../src/adapters/postgres/statements/left-intent.ts";
import {
  answerRequest,
  beginRequests,
  leaveRequests,
  putBackRequest,
  readLeftRequests,
  withdrawRequest,
} from "../../../src/adapters/postgres/statements/left-request.ts";
import { chargeKeys } from "../../../src/adapters/postgres/statements/policy.ts";
import { anIntent } from "../../support/lane-samples.ts";
import { idleConditions, sight, type Topic } from "./idle-conditions.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
beforeAll(async () => {
  subject = await createPostgresSubject();
});
afterAll(() => subject.close());

const [ASKED, OTHER, OWNER, TWIN] = [1, 2, 3, 4].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
const SIGNER = `0x${"a".repeat(40)}`;
const STRANGER = `0x${"b".repeat(40)}`;

const where = (set: string) => `UPDATE fencepost.left_request SET ${set} WHERE left_id = '${ASKED}'`;
const ALONE = `DELETE FROM fencepost.left_request WHERE left_id = '${OTHER}'`;
const BEGUN = where(`begun_by = '${OWNER}'`);
const BEGUN_ELSEWHERE = where(`begun_by = '${TWIN}'`);
const ANSWERED = `${BEGUN}; ${where("answer = '1'")}`;
const ACCEPTED = { ...anIntent({ chainId: 1, signer: `0x${"a".repeat(40)}` }), txId: String(TWIN) };
const LEFT = {
  ...{ leftId: TWIN, chainId: 1, signer: SIGNER },
  ...{ action: "act", body: "{}", owner: null, repeatable: false },
};
const BOTH = [`1 ${SIGNER}`, `2 ${SIGNER}`];

/** Two requests on two lanes, each waiting for its lane's owner. Neither is begun or past its deadline. */
const LEFT_REQUESTS: Topic = {
  world: `INSERT INTO fencepost.left_request (left_id, chain_id, signer, action, body, repeatable, until)
    VALUES ('${ASKED}', 1, '${SIGNER}', 'act', '{}', false, now() + interval '1 minute'),
           ('${OTHER}', 2, '${SIGNER}', 'act', '{}', false, now() + interval '1 minute')`,
  states: {
    "as it was left": "SELECT 1",
    "begun by the one that asks": BEGUN,
    "begun by another": BEGUN_ELSEWHERE,
    "begun, and the other one, too": `UPDATE fencepost.left_request SET begun_by = '${OWNER}'`,
    "begun and answered": ANSWERED,
    "answered and put back": where("answer = '1'"),
    "over a moment ago": where("until = now() - interval '1 second'"),
    "over long ago": where("until = now() - interval '11 minutes'"),
    "the only one": ALONE,
    "the only one, and over": `${ALONE}; ${where("until = now()")}`,
    "the only one, and answered": `${ALONE}; ${where("answer = '1'")}`,
  },
  subjects: [
    { statement: answerRequest, values: [ASKED, OWNER, '"done"'] },
    { statement: putBackRequest, values: [ASKED, OWNER] },
    { statement: withdrawRequest, values: withdrawRequest([intentRow(ACCEPTED)], ASKED).values },
    { statement: beginRequests, values: [[`1 ${SIGNER}`], OWNER, []] },
    { statement: beginRequests, values: [BOTH, OWNER, [ASKED]] },
    { statement: beginRequests, values: [BOTH, OWNER, []] },
    { statement: readLeftRequests, values: [[ASKED]] },
    { statement: leaveRequests, values: leaveRequests([LEFT], 1_000).values },
  ],
  left: `SELECT left_id, begun_by, answer FROM fencepost.left_request
    UNION ALL SELECT tx_id, NULL, 'accepted' FROM fencepost.intake ORDER BY 1, 2`,
};

const HOUR = "2026-11-17T10:00:00Z";

const MOST = { mostHourValue: 100, mostHourCost: 100, mostDayValue: 100, mostDayCost: 100 };
const CHARGED = { hour: HOUR, value: 10, cost: 10, corrections: [], ...MOST };

/**
 * Charges ten more of every counted quantity to two API keys, each on its own chain. Both keys had used fifty of a
 * hundred before.
 */
function charging(more: object = {}): readonly unknown[] {
  return chargeKeys([
    { owner: "shop", chainId: 1, ...CHARGED, ...more },
    { owner: "bank", chainId: 2, ...CHARGED, ...more },
  ]).values;
}

/**
 * Three charges with different amounts and hours: one API key on two chains, and two API keys on one chain. In
 * addition, the first charge has the daily cost limit `most`.
 */
function chargingEach(most: number): readonly unknown[] {
  const first = { owner: "shop", chainId: 1, ...CHARGED };
  return chargeKeys([
    { ...first, value: 1, cost: 2, mostDayCost: most },
    { ...first, chainId: 2, hour: "2026-11-17T11:00:00Z", value: 3, cost: 4 },
    { ...first, owner: "bank", hour: "2026-11-17T12:00:00Z", value: 5, cost: 6 },
  ]).values;
}

const used = (set: string) => `UPDATE fencepost.key_use SET ${set} WHERE owner = 'shop' AND chain_id = 1`;
const correcting = (hour: string) => charging({ corrections: [{ hour, value: -7, cost: -9 }] });

const KEY_USE: Topic = {
  world: `INSERT INTO fencepost.key_use (owner, chain_id, use_hour, hour_value, hour_cost, day_value, day_cost)
    SELECT o, c, '${HOUR}', 50, 50, 50, 50 FROM unnest(ARRAY['shop', 'bank']) AS o, unnest(ARRAY[1, 2]) AS c`,
  states: {
    "half is used": "SELECT 1",
    "the last of it is used": used("hour_value = 90, hour_cost = 90, day_value = 90, day_cost = 90"),
    ...Object.fromEntries(
      ["hour_value", "hour_cost", "day_value", "day_cost"].map((column) => [`no ${column}`, used(`${column} = 91`)]),
    ),
    "it was an earlier hour": used("use_hour = '2026-11-17T09:00:00Z', hour_value = 95, hour_cost = 95"),
    "it was the day before": used("use_hour = '2026-11-16T10:00:00Z', day_value = 95, day_cost = 95, hour_cost = 95"),
    "it is a later hour already": used("use_hour = '2026-11-17T11:00:00Z'"),
    "more than allowed is used":
      "UPDATE fencepost.key_use SET hour_value = 200, hour_cost = 200, day_value = 200, day_cost = 200",
  },
  subjects: [
    { statement: chargeKeys, values: chargingEach(100) },
    { statement: chargeKeys, values: chargingEach(51) },
    { statement: chargeKeys, values: charging() },
    { statement: chargeKeys, values: charging({ value: 0, cost: 0 }) },
    { statement: chargeKeys, values: correcting(HOUR) },
    { statement: chargeKeys, values: correcting("2026-11-17T03:00:00Z") },
    { statement: chargeKeys, values: correcting("2026-11-16T10:00:00Z") },
  ],
  left: "SELECT * FROM fencepost.key_use ORDER BY owner, chain_id",
  beside: {
    "fencepost:charge-keys: (k.owner, k.chain_id) IN (SELECT w.owner, w.chain_id FROM wanted AS w)":
      "locks no more rows than are charged",
    "fencepost:charge-keys: FOR NO KEY UPDATE OF k": "two commits at once: policy-race.test.ts",
  },
};

const ACTION_KEYS: Topic = {
  world: `INSERT INTO fencepost.order_key (subject, key, signer, chain_id, fingerprint, carried_out_at)
    VALUES ('cancel', 'once', '${SIGNER}', 1, decode(repeat('ab', 32), 'hex'), now())`,
  states: Object.fromEntries(
    ["subject = 'other'", "key = 'other'", `signer = '${STRANGER}'`, "chain_id = 2", "chain_id = chain_id"].map(
      (set) => [set, `UPDATE fencepost.order_key SET ${set}`],
    ),
  ),
  subjects: [{ statement: findActionKeys, values: [["cancel"], ["once"], [SIGNER], [1]] }],
  left: "SELECT 1",
};

const unanswered = (set: string) => `UPDATE fencepost.intake SET ${set} WHERE tx_id = '${ASKED}'`;

const LEFT_INTENTS: Topic = {
  world: `INSERT INTO fencepost.intake (intake_id, tx_id, chain_id, signer, data, value, fingerprint, unanswered)
    OVERRIDING SYSTEM VALUE
    SELECT n, t::uuid, 1, '${SIGNER}', '', 0, decode(repeat('ab', 32), 'hex'), true
    FROM unnest(ARRAY[1, 2], ARRAY['${ASKED}', '${OTHER}']) AS w(n, t);
    INSERT INTO fencepost.declined VALUES ('${TWIN}', 1, 'old', now() - interval '1 minute')`,
  states: {
    "its sender waits": "SELECT 1",
    "its sender has its answer": unanswered("unanswered = false"),
    "it is another's alias": unanswered(`alias_of = '${OTHER}'`),
    "a refusal from long ago lies there": "UPDATE fencepost.declined SET at = now() - interval '11 minutes'",
  },
  subjects: [
    { statement: declineIntents, values: [[1], ["{}"]] },
    {
      statement: declineIntents,
      values: [
        [1, 2],
        ["1", "2"],
      ],
    },
  ],
  left: `SELECT tx_id::text, unanswered::text, '' AS problem FROM fencepost.intake
    UNION ALL SELECT tx_id::text, 'declined', problem FROM fencepost.declined ORDER BY 1, 2, 3`,
};

describe("the conditions of the SQL statements", () => {
  it.each([
    ["requests enqueued for the owner of a lane, begun once and answered by the node that began them", LEFT_REQUESTS],
    ["the use of API keys, counted per key and chain, within the hour and the day", KEY_USE],
    ["actions that were carried out", ACTION_KEYS],
    ["intents whose sender waits for an answer", LEFT_INTENTS],
    // protects [Replicas that embed the library] src/adapters/postgres/statements/left-request.ts, src/adapters/postgres/statements/left-intent.ts, src/adapters/postgres/statements/policy.ts, src/adapters/postgres/statements/action-key.ts
  ])("each have a test case that fails without the condition (statements about %s)", async (_, topic) => {
    expect(await idleConditions(subject.client, topic)).toEqual([]);
  });
});

describe("a pending request that another instance has begun or answered", () => {
  it.each([
    ["begun", BEGUN_ELSEWHERE, { begun_by: TWIN, answer: null }],
    ["answered", ANSWERED, { begun_by: OWNER, answer: "1" }],
  ])("cannot be changed by any other instance: %s", async (_, state, stands) => {
    for (const { statement, values } of LEFT_REQUESTS.subjects.slice(0, 3)) {
      const seen = await sight(subject.client, LEFT_REQUESTS, state, { sql: statement.sql, values });
      expect(JSON.parse(seen)[1][0], statement.name).toMatchObject({ left_id: ASKED, ...stands });
    }
  });
});
