import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { insertion } from "../../../src/adapters/postgres/commit/commands.ts";
import { copies } from "../../../src/adapters/postgres/commit/copies.ts";
import type { Allocation, LanePlan } from "../../../src/adapters/postgres/commit/plan.ts";
import { Connections } from "../../../src/adapters/postgres/connections.ts";
import type { Command } from "../../../src/adapters/postgres/statements/statement.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import type { Payload, PreparedIntent } from "../../../src/domain/transaction.ts";
import { aLane, anIntent, type IntentWishes } from "../../support/lane-samples.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const RUNS = 40;

const hex = (bytes: number) => fc.uint8Array({ minLength: bytes, maxLength: bytes }).map(hexOf);
const quantity = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
/** Everything that ends a field or a row of COPY, or means something there. */
const treacherous = fc.constantFrom("\\", "\\N", "\\.", "\t", "\n", "\r\n", "\\x00", "\\t", '"', "'", "é", "𝄞", "now");
const text = fc
  .array(fc.oneof(treacherous, fc.string()), { minLength: 1, maxLength: 6 })
  .map((words) => words.join(""));
const printable = text.map((word) => word.replaceAll(/\p{Cc}/gu, "_").slice(0, 200) || "_");
const fees = fc.oneof(
  fc.constant({}),
  fc.record({ type: fc.constant("legacy" as const), gasPrice: quantity }),
  fc.record({ type: fc.constant("eip1559" as const), maxFeePerGas: quantity, maxPriorityFeePerGas: quantity }),
);
const payload: fc.Arbitrary<Partial<Payload>> = fc
  .record({
    to: fc.option(hex(20)),
    data: fc.uint8Array({ maxLength: 64 }).map(hexOf),
    value: quantity,
    optional: fc.record(
      {
        gas: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
        accessList: fc.array(fc.record({ address: hex(20), storageKeys: fc.array(hex(32), { maxLength: 2 }) }), {
          maxLength: 2,
        }),
      },
      { requiredKeys: [] },
    ),
    fees,
  })
  .map(({ optional, fees, ...rest }) => ({ ...rest, ...optional, ...fees }));
const metadata = fc.option(fc.dictionary(printable, fc.oneof(printable, fc.integer(), fc.constant(null))));
const wishes: fc.Arbitrary<IntentWishes> = fc.record({
  requestId: fc.option(printable, { nil: null }),
  payload,
  metadata: metadata.map((value) => (value === null ? null : { ...value })),
  gas: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
});

function hexOf(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}

/** Rows in one trip, against rows the usual way: sent as they are, so that nothing can hide behind a second try. */
describe("rows of an allocation", () => {
  let subject: PostgresSubject;
  let connections: Connections;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    const session = { preparedStatements: true, hasTransactionTimeout: true };
    connections = new Connections({
      databaseUrl: subject.url,
      clock: systemClock,
      max: 1,
      deadlineMs: 10_000,
      ...session,
    });
  });
  afterAll(async () => {
    await connections.close();
    await subject.close();
  });

  async function written(
    asked: readonly IntentWishes[],
    commandsOf: (allocations: readonly Allocation[]) => readonly Command[],
  ): Promise<readonly unknown[]> {
    const lane = aLane();
    const allocations = asked.map((wishes, nonce) => allocationOf(anIntent(lane, wishes), nonce));
    await connections.use((session) =>
      Promise.all(
        session.together(() => [
          session.control("BEGIN"),
          ...commandsOf(allocations).map((command) => session.send(command)),
          session.control("COMMIT"),
        ]),
      ),
    );
    const { rows } = await subject.client.query(
      `SELECT to_jsonb(t) - '{tx_id,signer,created_at,updated_at}'::text[] AS transaction,
         to_jsonb(p) - '{tx_id,allocated_at}'::text[] AS payload,
         t.created_at = t.updated_at AND t.created_at = p.allocated_at AS at_once
       FROM fencepost.transaction t JOIN fencepost.payload p USING (tx_id)
       WHERE t.signer = $1 ORDER BY t.nonce`,
      [lane.signer],
    );
    return rows;
  }

  it("are the same by COPY as by INSERT, whatever they carry", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(wishes, { minLength: 1, maxLength: 12, selector: keyOf }), async (asked) => {
        const copied = await written(asked, copies);
        expect(copied.length).toBe(asked.length);
        expect(copied).toEqual(await written(asked, (allocations) => [insertion(allocations, null)]));
      }),
      { numRuns: RUNS },
    );
  });
});

function allocationOf(intent: PreparedIntent, nonce: number): Allocation {
  const { chainId: chain_id, signer } = intent.lane;
  return { intent, nonce, intake: null, lane: { row: { chain_id, signer, node_id: "a\\node", token: 7 } } as LanePlan };
}

/** Nobody asks twice under one id; those without one are all different. */
function keyOf({ requestId }: IntentWishes): unknown {
  return requestId ?? Symbol("nobody");
}
