/**
 * A short fuzz run. `npm run test:fuzz` sends more requests with other seeds, set by FENCEPOST_FUZZ_REQUESTS and
 * FENCEPOST_FUZZ_SEED.
 */
import { expect } from "vitest";
import { fuzz, hasSucceeded } from "../support/fuzz/fuzz.ts";
import { it, OTHER_SIGNER, SIGNER } from "../support/integration.ts";
import { aPermit, GREETING_RULE, permitRule } from "../support/message-samples.ts";
import { pricedTransfer } from "../support/transfers.ts";

const REQUESTS = Number(process.env.FENCEPOST_FUZZ_REQUESTS ?? 1_000);
const SEED = Number(process.env.FENCEPOST_FUZZ_SEED ?? 1);
const CHAIN_ID = 31_337;

const NOT_BY_CHANCE = new Set([
  // This operation succeeds only if the signer and the request id belong to the same transaction.
  "getTransactionByRequest",
  // This operation succeeds only with bytes that were signed with the signer's own key.
  "submitReserved",
  // This operation succeeds only for a transaction that is sent and unmined. In this test, a block is mined before the
  // next request.
  "repriceTransaction",
  // The approval routes need a policy that makes a transaction wait for approval, and the key of a second person.
  ...["approveTransaction", "rejectTransaction"],
]);

/** Allows the messages of the OpenAPI document's examples, permits only with an approval. */
const POLICIES = {
  signers: {
    "*": {
      messages: {
        personal: [GREETING_RULE],
        typedData: [permitRule({ fields: { value: { max: "1000" } }, requireApproval: {} }, CHAIN_ID)],
      },
    },
  },
};
const MESSAGES = Array.from({ length: 12 }, (_, nonce) => ({
  signer: OTHER_SIGNER,
  typedData: aPermit(OTHER_SIGNER, { nonce, chainId: CHAIN_ID }),
}));

/** Inserts notices about nodes that vanished earlier, so that there is something to acknowledge. */
const NOTICES = `
  INSERT INTO fencepost.notice (kind, node_id, first_seen_at, last_seen_at, times, evidence)
  SELECT 'NODE_VANISHED', 'vanished-' || n, now(), now(), 1, jsonb_build_array(jsonb_build_object(
    'at', now(), 'instanceId', gen_random_uuid(), 'why', 'expired', 'lanes', n
  ))
  FROM generate_series(1, 4) AS n`;

it(
  // protects [Attacks] src/contract/routes.ts, src/adapters/http/exchange/problems.ts
  `${REQUESTS} valid and invalid requests get only responses that the OpenAPI document defines`,
  async ({ database, nodes, simulated }) => {
    const node = await nodes.start(simulated.url, {
      FENCEPOST_LOG_LEVEL: "error",
      FENCEPOST_CLUSTER_SECRET: "a-secret-that-all-nodes-of-the-cluster-share",
    });
    await database.query(NOTICES);
    const { faults, answers, operations } = await fuzz({
      url: node.url,
      requests: REQUESTS,
      seed: SEED,
      signer: SIGNER,
      other: OTHER_SIGNER,
      ...{ policies: POLICIES, messages: MESSAGES },
      notByChance: NOT_BY_CHANCE,
    });
    if (process.env.FENCEPOST_FUZZ_REQUESTS !== undefined)
      process.stdout.write(`${JSON.stringify([...answers].sort())}\n`);
    expect(faults).toEqual([]);
    expect(node.stderr()).not.toMatch(/unforeseen|unexpected error|unhandled|TypeError|RangeError/i);
    // Check that every operation succeeded at least once, except those that random requests cannot make succeed.
    expect(operations.filter((name) => !hasSucceeded(answers, name) && !NOT_BY_CHANCE.has(name))).toEqual([]);
    expect((await fetch(`${node.url}/readyz`)).status).toBe(200);
    expect((await node.client.send(pricedTransfer(1_000_000))).txId).toMatch(/^[0-9a-f-]{36}$/);
  },
  120_000 + REQUESTS * 60,
);
