/** `npm run test:fuzz` asks more, and from other seeds: FENCEPOST_FUZZ_REQUESTS, FENCEPOST_FUZZ_SEED. */
import { expect } from "vitest";
import { fuzz } from "../support/fuzz/fuzz.ts";
import { it, OTHER_SIGNER } from "../support/integration.ts";
import { pricedTransfer } from "../support/transfers.ts";

const REQUESTS = Number(process.env.FENCEPOST_FUZZ_REQUESTS ?? 2_000);
const SEED = Number(process.env.FENCEPOST_FUZZ_SEED ?? 1);

const NOT_BY_CHANCE = new Set([
  // Takes the signer and the request id of one transaction, both at once.
  "getTransactionByRequest",
  // Takes bytes that the signer's own key has signed.
  "submitReserved",
  // Takes a transaction that is out and not mined: here a block comes before the next request.
  "repriceTransaction",
  // Take a policy by which a transaction waits for approval, and the key of a second person.
  ...["approveTransaction", "rejectTransaction"],
]);

/** Nodes that vanished earlier: notices to acknowledge. */
const NOTICES = `
  INSERT INTO fencepost.notice (kind, node_id, first_seen_at, last_seen_at, times, evidence)
  SELECT 'NODE_VANISHED', 'vanished-' || n, now(), now(), 1, jsonb_build_array(jsonb_build_object(
    'at', now(), 'instanceId', gen_random_uuid(), 'why', 'expired', 'lanes', n
  ))
  FROM generate_series(1, 4) AS n`;

it(
  // protects [Attacks] src/contract/routes.ts, src/adapters/http/exchange/problems.ts
  `${REQUESTS} requests, sound and mistaken, are answered as the document says, and none is a mistake of the node's`,
  async ({ database, nodes, simulated }) => {
    const node = await nodes.start(simulated.url, { FENCEPOST_LOG_LEVEL: "error" });
    await database.query(NOTICES);
    const { faults, answers, operations } = await fuzz({
      url: node.url,
      requests: REQUESTS,
      seed: SEED,
      reserveFor: OTHER_SIGNER,
    });
    if (process.env.FENCEPOST_FUZZ_REQUESTS !== undefined)
      process.stdout.write(`${JSON.stringify([...answers].sort())}\n`);
    expect(faults).toEqual([]);
    expect(node.stderr()).not.toMatch(/unforeseen|unexpected error|unhandled|TypeError|RangeError/i);
    // It got somewhere: every operation did its work, but for those that chance cannot bring about.
    const hasSucceeded = (name: string) => [...answers.keys()].some((key) => key.startsWith(`${name} 2`));
    expect(operations.filter((name) => !hasSucceeded(name) && !NOT_BY_CHANCE.has(name))).toEqual([]);
    expect((await fetch(`${node.url}/readyz`)).status).toBe(200);
    expect((await node.client.send(pricedTransfer(1_000_000))).txId).toMatch(/^[0-9a-f-]{36}$/);
  },
  120_000 + REQUESTS * 60,
);
