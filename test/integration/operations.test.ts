/**
 * Operators and hooks with real processes and a real database: a decision is carried out once, or its true outcome is
 * reported.
 */
import { createHmac } from "node:crypto";
import { describe, expect } from "vitest";
import { createClient, FencepostApiError, type Transaction } from "../../src/client/index.ts";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { type SimulatedServer, startSimulatedServer } from "../doubles/simulated-chain/server.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { BLOCK_TIME_MS, it as base, type Database, RECIPIENT, SHORT_LEASE, SIGNER } from "../support/integration.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { parseExposition } from "../support/prometheus-text.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

/** A chain that mines only after the test calls `release`. */
interface HeldChain extends SimulatedServer {
  release(): void;
}

const it = base.extend<{ readonly held: HeldChain; readonly receiver: WebhookReceiver & { url: string } }>({
  held: async ({ task: _ }, use) => {
    const chain = new SimulatedChain();
    chain.mine(3);
    const server = await startSimulatedServer({ chain });
    // Mining is done by a second server of the same chain, which `release` starts.
    let miner: Promise<SimulatedServer> | null = null;
    const release = () => {
      miner ??= startSimulatedServer({ chain, blockTimeMs: BLOCK_TIME_MS });
    };
    await use({ ...server, release });
    await (miner as Promise<SimulatedServer> | null)?.then((started) => started.close());
    await server.close();
  },
  receiver: async ({ task: _ }, use) => {
    const receiver = new WebhookReceiver();
    const url = await receiver.listen();
    await use(Object.assign(receiver, { url }));
    await receiver.close();
  },
});

async function sent({ client }: NodeProcess, index: number): Promise<string> {
  const { txId } = await client.send(pricedTransfer(index));
  await waitUntil(async () => (await client.get(txId)).subState === "BROADCAST", `${txId} is with a node`);
  return txId;
}

function outcomeOf({ state, subState }: Transaction): string {
  return subState === null ? state : `${state}/${subState}`;
}

function kindsOf({ attempts }: Transaction): readonly string[] {
  return attempts.map(({ kind }) => kind);
}

const auditOf = (database: Database, { chain, url }: SimulatedServer) =>
  audit({ database, rpcUrl: url, witnessed: chain.witness.map(({ hash }) => hash) });

describe("a transaction with validUntil", () => {
  it("expires if no block includes the transaction in time", async ({ held, nodes, database }) => {
    const node = await nodes.start(held.url);
    const { client } = node;
    const soon = () => new Date(Date.now() + 4_000).toISOString();
    const { txId: over } = await client.send({ ...pricedTransfer(0), validUntil: soon() });
    const { txId: kept } = await client.send({ ...pricedTransfer(1), validUntil: soon() });
    await waitUntil(async () => (await client.get(kept)).subState === "BROADCAST", "both are with a node");
    const answer = await client.suspendTransaction(kept, { reason: "looks odd" });
    expect(answer.heldSince).not.toBeNull();
    expect((await client.explain(kept)).causes.map(({ code }) => code)).toContain("HELD");
    await client.suspend(SIGNER, { reason: "nothing is signed" });
    const { txId: unsent } = await client.send({ ...pricedTransfer(2), validUntil: soon() });
    await waitUntil(async () => (await client.get(unsent)).subState === "EXPIRED", "it expires without being sent");
    expect(await client.get(unsent)).toMatchObject({ nonce: null, attempts: [] });
    await client.resume(SIGNER, { reason: "go on" });
    await waitUntil(async () => kindsOf(await client.get(over)).includes("cancel"), "what was sent is cancelled");
    expect(kindsOf(await client.get(kept))).toEqual(["initial"]);
    held.release();
    await untilSettled(database, 3);
    expect(outcomeOf(await client.get(over))).toBe("FAILED_FINAL/EXPIRED");
    expect(outcomeOf(await client.get(kept))).toBe("CONFIRMED");
    const late = await client
      .send({ ...pricedTransfer(3), validUntil: "2020-01-01T00:00:00Z" })
      .catch((error) => error);
    expect(late).toMatchObject({ code: "INVALID_REQUEST", status: 400, problem: { path: "validUntil" } });
    await auditOf(database, held);
  });
});

describe("an operator", () => {
  it("can cancel a transaction that is not mined yet", async ({ held, nodes, database }) => {
    const keys = { FENCEPOST_AUTH: "keys", FENCEPOST_API_KEYS: "on-call:s3cret-of-on-call-people:read+submit+operate" };
    const node = await nodes.start(held.url, keys);
    const client = createClient({ url: node.url, apiKey: "s3cret-of-on-call-people" });
    const keyed = { ...node, client };
    const [txId, behind] = [await sent(keyed, 0), await sent(keyed, 1)];
    const answered = await client.cancel(txId, { reason: "typo", audit: { ticket: 4711 } });
    expect(kindsOf(answered)).toEqual(["initial", "cancel"]);
    held.release();
    await untilSettled(database, 2);
    expect(outcomeOf(await client.get(txId))).toBe("FAILED_FINAL/CANCELLED");
    expect(outcomeOf(await client.get(behind))).toBe("CONFIRMED");
    const { history = [] } = await client.get(txId, { include: ["history"] });
    expect(history.filter(({ actor }) => actor !== null)).toMatchObject([
      { event: "cancel", actor: "operator:on-call", reason: "typo", audit: { action: "cancel", ticket: 4711 } },
    ]);
    await auditOf(database, held);
  });

  it("gets 409 for a cancel of a confirmed transaction", async ({ held, nodes, database }) => {
    const node = await nodes.start(held.url);
    const txId = await sent(node, 0);
    held.faults.inject({ kind: "httpError", status: 502 }, { method: "eth_sendRawTransaction" });
    await node.client.cancel(txId, { reason: "too late" });
    held.chain.mine();
    held.faults.heal();
    held.release();
    await untilSettled(database, 1);
    const settled = await node.client.get(txId);
    expect(outcomeOf(settled)).toBe("CONFIRMED");
    expect(settled.txHash).toBe(settled.attempts[0]?.txHash);
    const error = await node.client.cancel(txId, { reason: "again" }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(FencepostApiError);
    expect(error).toMatchObject({ code: "CONFLICT", status: 409, problem: { txHash: settled.txHash } });
    await auditOf(database, held);
  });

  it("can replace a sent or a queued transaction", async ({ held, nodes, database }) => {
    const node = await nodes.start(held.url);
    const onTheWay = await sent(node, 0);
    await node.client.suspend(SIGNER, { reason: "maintenance" });
    const queued = (await node.client.send(pricedTransfer(1))).txId;
    const payload = (value: bigint) => ({ to: RECIPIENT, value, gas: 21_000 }) as const;
    await node.client.replace(onTheWay, { reason: "other amount", payload: payload(500n) });
    await node.client.replace(queued, { reason: "other amount", payload: payload(600n) });
    expect(await node.client.get(queued)).toMatchObject({ state: "ALLOCATED", payload: { value: "2" } });
    const before = held.chain.witness.length;
    held.release();
    await waitUntil(async () => (await node.client.get(onTheWay)).state === "CONFIRMED", "the first one is final");
    // The lane was suspended, so the replacement was decided but never sent. The original transaction had been sent
    // before.
    expect(held.chain.witness.length).toBe(before);
    await node.client.resume(SIGNER, { reason: "done" });
    await untilSettled(database, 2);
    expect(outcomeOf(await node.client.get(queued))).toBe("CONFIRMED/REPLACED");
    expect(kindsOf(await node.client.get(queued))).toEqual(["replace"]);
    const { mined } = await auditOf(database, held);
    expect(mined.map(({ value }) => value)).toEqual([1n, 600n]);
    const decisions = await database.query(
      "SELECT action, actor, reason FROM fencepost.lane_decision ORDER BY decision_id",
    );
    expect(decisions).toEqual([
      { action: "suspend", actor: "operator:anonymous", reason: "maintenance" },
      { action: "resume", actor: "operator:anonymous", reason: "done" },
    ]);
  });
});

describe("a kill of the node during a cancel", () => {
  it.for(["another.signed", "another.committed"])(
    "(at %s) leaves the whole cancel or nothing to the next owner",
    async (failpoint, { held, nodes, database }) => {
      const doomed = nodes.crashing(failpoint, held.url, SHORT_LEASE);
      const { url } = await doomed.ready;
      const client = createClient({ url, repeat: false });
      const { txId } = await client.send(pricedTransfer(0));
      await waitUntil(async () => (await client.get(txId)).subState === "BROADCAST", "it is with a node");
      await expect(client.cancel(txId, { reason: "r" })).rejects.toMatchObject({ code: "UNREACHABLE" });
      await doomed.exited;
      const heir = await nodes.start(held.url, SHORT_LEASE);
      const isDecided = failpoint === "another.committed";
      const count = isDecided ? 2 : 1;
      await waitUntil(() => held.chain.witness.length > count - 1, "the heir has sent what there is");
      await waitUntil(async () => (await heir.client.get(txId)).subState === "BROADCAST", "it is with a node again");
      held.release();
      await untilSettled(database, 1);
      const settled = await heir.client.get(txId);
      expect(kindsOf(settled)).toEqual(isDecided ? ["initial", "cancel"] : ["initial"]);
      expect(outcomeOf(settled)).toBe(isDecided ? "FAILED_FINAL/CANCELLED" : "CONFIRMED");
      await auditOf(database, held);
    },
  );
});

describe("the HTTP hook for stuck transactions", () => {
  const SECRET = "s3cret-of-the-hook";

  it("can cancel a transaction that blocks its lane too long", async ({ held, nodes, database, receiver }) => {
    const alerts: { code: string }[] = [];
    receiver.answer = (response, { headers, body }) => {
      const question = JSON.parse(body);
      if (question.trigger === undefined) {
        alerts.push(question);
        return response.end("{}");
      }
      const [, at, digest] = /^t=(\d+),v1=(\w+)$/.exec(String(headers["fencepost-signature"])) ?? [];
      const isOurs = createHmac("sha256", SECRET).update(`${at}.${body}`).digest("hex") === digest;
      response.writeHead(isOurs ? 200 : 403);
      return response.end(JSON.stringify({ action: "CANCEL", reason: `nonce ${question.nonce} is too old` }));
    };
    const node = await nodes.start(held.url, {
      FENCEPOST_STUCK_HOOK: receiver.url,
      FENCEPOST_HOOK_NETWORKS: "127.0.0.1",
      FENCEPOST_STUCK_HOOK_SECRET: SECRET,
      FENCEPOST_ALERT_WEBHOOK_URL: receiver.url,
      FENCEPOST_ALERT_HEAD_AGE: "1s",
    });
    const txId = await sent(node, 0);
    await waitUntil(async () => kindsOf(await node.client.get(txId)).includes("cancel"), "the hook has decided");
    held.release();
    await untilSettled(database, 1);
    const { history = [], ...settled } = await node.client.get(txId, { include: ["history"] });
    expect(outcomeOf(settled)).toBe("FAILED_FINAL/CANCELLED");
    expect(history.filter(({ actor }) => actor !== null)).toMatchObject([
      { event: "cancel", actor: "hook", reason: "nonce 0 is too old", audit: { action: "CANCEL", trigger: "headAge" } },
    ]);
    const { samples } = parseExposition(await (await fetch(`${node.url}/metrics`)).text());
    expect(samples.filter(({ name }) => name === "fencepost_stuck_resolution_total")).toMatchObject([
      { labels: { action: "CANCEL", result: "applied" }, value: 1 },
    ]);
    expect(alerts.map(({ code }) => code)).toContain("HEAD_OF_LINE_OLD");
    expect(receiver.received.every(({ body }) => !body.includes(SECRET))).toBe(true);
    await auditOf(database, held);
  });
});
