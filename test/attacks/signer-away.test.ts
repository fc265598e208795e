/** A remote signer is unreachable for one of two nodes: accepted transactions are signed through the other node. */
import { expect, onTestFinished } from "vitest";
import { audit } from "../support/audit.ts";
import { it, KEYS, SHORT_LEASE, SIGNER } from "../support/integration.ts";
import type { ServiceServer } from "../support/service-server.ts";
import { transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";
import { startWeb3Signer } from "../support/web3signer.ts";

const NONE_LOCAL = { FENCEPOST_PRIVATE_KEYS: "", ...SHORT_LEASE };

// protects [Signers] src/domain/cluster/key-health.ts, src/application/cluster/keys-away.ts, src/domain/cluster/placement.ts
it("a lane whose owner's remote signer is dead moves to a node whose signer responds", async ({
  simulated,
  nodes,
  database,
}) => {
  const signers = await Promise.all([0, 1].map(() => startWeb3Signer({ keys: [KEYS[0]], chainId: null })));
  onTestFinished(async () => void (await Promise.all(signers.map((signer) => signer.close()))));
  const started = await Promise.all(
    signers.map(({ url }, index) =>
      nodes.start(simulated.url, {
        ...NONE_LOCAL,
        FENCEPOST_REMOTE_SIGNER_URL: url,
        FENCEPOST_NODE_ID: `node-${index}`,
      }),
    ),
  );
  const ownerOf = async () => {
    const sql = `SELECT n.node_id AS "nodeId" FROM fencepost.lane AS l
      JOIN fencepost.node_instance AS n ON n.instance_id = l.owner_instance AND NOT n.dead WHERE l.signer = $1`;
    const [row] = await database.query<{ nodeId: string }>(sql, [SIGNER.toLowerCase()]);
    return row?.nodeId ?? null;
  };
  const [first] = started;
  const { txId } = await (first as (typeof started)[0]).client.send(transfer(0));
  await (first as (typeof started)[0]).client.waitFor(txId);
  const owner = Number((await waitUntil(ownerOf, "the lane has an owner")).slice(-1));
  const other = 1 - owner;
  await (signers[owner] as ServiceServer).close();
  const client = (started[other] as (typeof started)[0]).client;
  const waiting = await Promise.all([1, 2, 3].map((index) => client.send(transfer(index))));
  for (const sent of waiting) {
    expect(await client.waitFor(sent.txId, { timeoutMs: 30_000 })).toMatchObject({ state: "CONFIRMED" });
  }
  expect(await ownerOf()).toBe(`node-${other}`);
  const listed = await database.query<{ nodeId: string; keysAway: readonly string[] }>(
    'SELECT node_id AS "nodeId", keys_away AS "keysAway" FROM fencepost.node_instance WHERE NOT dead ORDER BY node_id',
  );
  const away = (index: number) => ({
    nodeId: `node-${index}`,
    keysAway: index === owner ? [SIGNER.toLowerCase()] : [],
  });
  expect(listed).toEqual([away(0), away(1)]);
  const last = await client.send(transfer(4));
  expect(await client.waitFor(last.txId)).toMatchObject({ state: "CONFIRMED" });
  expect(await ownerOf(), "it does not wander").toBe(`node-${other}`);
  await audit({ database, rpcUrl: simulated.url });
});
