import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  BARE_STATES,
  STATES,
  type State,
  SUB_STATES,
  TRANSITIONS,
  type TransitionEvent,
  type TransitionRule,
} from "../../../src/domain/transaction/transitions.ts";
import { uniqueAddress } from "../../support/lane-samples.ts";
import { dumpSchema } from "../../support/schema-dump.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const EVENTS = Object.keys(TRANSITIONS) as TransitionEvent[];
const ALL_SUB_STATES = [null, ...STATES.flatMap((state) => SUB_STATES[state] as readonly string[])];
const CHECK_VIOLATION = "23514";

let subject: PostgresSubject;
let client: Client;

beforeAll(async () => {
  subject = await createPostgresSubject();
  client = subject.client;
});
afterAll(() => subject.close());

describe("the database schema", () => {
  it("equals the snapshot in schema.sql", async () => {
    await expect(await dumpSchema(client)).toMatchFileSnapshot("schema.sql");
  });

  it("has the chain id in every table that stores data of a chain", async () => {
    const { rows } = await client.query<{ name: string }>(
      `SELECT c.relname AS name FROM pg_class c
       WHERE c.relnamespace = 'fencepost'::regnamespace AND c.relkind = 'r' AND NOT EXISTS (
         SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'chain_id'
       ) ORDER BY 1`,
    );
    expect(rows.map(({ name }) => name)).toEqual([
      "abi_document",
      "api_key",
      "api_secret",
      "cluster",
      "commit_marker",
      "database_history",
      "feed",
      "key_decision",
      "kill",
      "migration",
      "node_instance",
      "node_report",
      "policy",
      "policy_change",
      "subscriber",
      "subscriber_decision",
    ]);
  });
});

/**
 * True if the domain's table allows this pair of state and sub-state. The test then tries the same pair against the
 * database's constraints.
 */
function isStatus(state: State, subState: string | null): boolean {
  if (subState === null) return BARE_STATES.includes(state);
  return (SUB_STATES[state] as readonly string[]).includes(subState);
}

function isTransition(
  event: TransitionEvent,
  from: State | null,
  to: { state: State; subState: string | null },
): boolean {
  const rule: TransitionRule = TRANSITIONS[event];
  if (!rule.from.includes(from)) return false;
  if (rule.to === "same") return to.state === from && isStatus(to.state, to.subState);
  return rule.to.state === to.state && rule.to.subState === to.subState;
}

describe("the database constraints that mirror the transition table", () => {
  it("accept exactly the statuses of the transition table", async () => {
    for (const state of STATES) {
      for (const subState of ALL_SUB_STATES) {
        const nonce = isStatus(state, subState) && hasNoNonce(state, subState) ? null : 0;
        const accepted = await accepts(() => insertTransaction({ state, subState, nonce }));
        expect({ state, subState, accepted }).toEqual({ state, subState, accepted: isStatus(state, subState) });
      }
    }
  });

  it("require a nonce for allocated transactions only", async () => {
    for (const state of STATES) {
      for (const subState of ALL_SUB_STATES.filter((each) => isStatus(state, each))) {
        const bare = await accepts(() => insertTransaction({ state, subState, nonce: null }));
        const bound = await accepts(() => insertTransaction({ state, subState, nonce: 1 }));
        // A transaction that was cancelled or expired may or may not have had a nonce.
        const mayHave = subState === "CANCELLED" || subState === "EXPIRED";
        const expected = mayHave
          ? { bare: true, bound: true }
          : { bare: hasNoNonce(state, subState), bound: !hasNoNonce(state, subState) };
        expect({ state, subState, bare, bound }).toEqual({ state, subState, ...expected });
      }
    }
  });

  it("accept exactly the transitions of the transition table", async () => {
    const combinations = EVENTS.flatMap((event) =>
      [null, ...STATES].flatMap((from) =>
        STATES.flatMap((state) => ALL_SUB_STATES.map((subState) => ({ event, from, state, subState }))),
      ),
    );
    const legal = combinations.filter(({ event, from, ...to }) => isTransition(event, from, to));
    expect(await acceptedHistory(combinations)).toEqual(legal);
    expect(legal.length).toBeGreaterThan(25);
    expect(combinations.length - legal.length).toBeGreaterThan(5_000);
  });

  it("accept exactly the completions of the transition table", async () => {
    const wanted = Object.values<TransitionRule>(TRANSITIONS).flatMap(({ completion }) => completion ?? []);
    for (const { state, settled } of wanted) {
      expect(await accepts(() => insertCompletion(state, settled))).toBe(true);
      expect(await accepts(() => insertCompletion(state, !settled))).toBe(false);
    }
    expect(await accepts(() => insertCompletion("STUCK", false))).toBe(true);
    expect(await accepts(() => insertCompletion("TRACKING", false))).toBe(false);
  });
});

describe("the database constraints", () => {
  it("refuse a second transaction with the same nonce or the same request id", async () => {
    const signer = uniqueAddress();
    await insertTransaction({ state: "ALLOCATED", subState: null, nonce: 5, signer, requestId: "r" });
    const again = { state: "ALLOCATED", subState: null, signer } as const;
    await expect(insertTransaction({ ...again, nonce: 5 })).rejects.toMatchObject({
      constraint: "transaction_nonce_once",
    });
    await expect(insertTransaction({ ...again, nonce: 6, requestId: "r" })).rejects.toMatchObject({
      constraint: "transaction_request_once",
    });
    await insertTransaction({ ...again, nonce: 5, chainId: 2, requestId: "r" });
  });

  it("refuse addresses and hashes that are not lower-case hex", async () => {
    for (const signer of ["0xABCDEF0000000000000000000000000000000000", "0x12", "", "abcdef"]) {
      await expect(
        client.query("INSERT INTO fencepost.lane (chain_id, signer) VALUES (1, $1)", [signer]),
      ).rejects.toMatchObject({
        constraint: "lane_signer",
      });
    }
  });

  it("refuse an owner without a valid fencing token", async () => {
    const insert = (token: number) =>
      client.query(
        "INSERT INTO fencepost.lane (chain_id, signer, owner_instance, token) VALUES (1, $1, gen_random_uuid(), $2)",
        [uniqueAddress(), token],
      );
    await expect(insert(0)).rejects.toMatchObject({ constraint: "lane_token" });
    await expect(insert(-1)).rejects.toMatchObject({ constraint: "lane_token" });
  });

  it("allow only one feed", async () => {
    await expect(
      client.query(
        "INSERT INTO fencepost.feed (epoch, last_seq, truncated_through, epoch_starts_after) VALUES (1, 0, 0, 0)",
      ),
    ).rejects.toMatchObject({ code: "23505" });
  });
});

function hasNoNonce(state: State, subState: string | null): boolean {
  return state === "CREATED" || subState === "REJECTED" || subState === "REQUEST_ID_REUSED";
}

async function accepts(insert: () => Promise<unknown>): Promise<boolean> {
  await client.query("BEGIN");
  try {
    await insert();
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: CHECK_VIOLATION });
    return false;
  } finally {
    await client.query("ROLLBACK");
  }
}

interface RowWishes {
  readonly state: State;
  readonly subState: string | null;
  readonly nonce: number | null;
  readonly signer?: string;
  readonly chainId?: number;
  readonly requestId?: string;
}

async function insertTransaction(wishes: RowWishes): Promise<unknown> {
  const { state, subState, nonce, requestId, chainId = 1, signer = uniqueAddress() } = wishes;
  await client.query("INSERT INTO fencepost.lane (chain_id, signer) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
    chainId,
    signer,
  ]);
  return client.query(
    `INSERT INTO fencepost.transaction (
       tx_id, chain_id, signer, request_id, nonce, state, sub_state, attempt_count, history_count, last_event,
       created_at, updated_at
     ) VALUES (gen_random_uuid(), $1, $2, $3, $4, $5, $6, 1, 1, 'allocate', now(), now())`,
    [chainId, signer, requestId ?? null, nonce, state, subState],
  );
}

interface Combination {
  readonly event: TransitionEvent;
  readonly from: State | null;
  readonly state: State;
  readonly subState: string | null;
}

/**
 * Tries to insert each combination separately inside the server. Thousands of round trips would take a quarter of a
 * minute.
 */
async function acceptedHistory(combinations: readonly Combination[]): Promise<readonly Combination[]> {
  await client.query(`
    CREATE FUNCTION pg_temp.accepts(event text, from_state text, state text, sub_state text) RETURNS boolean
    LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO fencepost.history (tx_id, ordinal, chain_id, event, from_state, state, sub_state, first_at, last_at)
      VALUES (gen_random_uuid(), 1, 1, event, from_state, state, sub_state, now(), now());
      RETURN true;
    EXCEPTION WHEN check_violation THEN
      RETURN false;
    END $$`);
  const { rows } = await client.query<{ place: number }>(
    `SELECT place::integer FROM json_array_elements($1::json) WITH ORDINALITY AS c(c, place)
     WHERE pg_temp.accepts(c->>'event', c->>'from', c->>'state', c->>'subState') ORDER BY place`,
    [JSON.stringify(combinations)],
  );
  return rows.map(({ place }) => combinations[place - 1] as Combination);
}

function insertCompletion(state: string, settled: boolean): Promise<unknown> {
  return client.query(
    `INSERT INTO fencepost.completion (seq, epoch, tx_id, chain_id, signer, state, settled, at)
     VALUES (1, 1, gen_random_uuid(), 1, $1, $2, $3, now())`,
    [uniqueAddress(), state, settled],
  );
}
