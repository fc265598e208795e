/** Webhooks for outcomes: nodes in processes deliver to real receivers, which verify signatures with another's library. */
import { createHmac } from "node:crypto";
import { Webhook as Verifier } from "standardwebhooks";
import { describe, expect } from "vitest";
import { type Completion, createClient, type NewWebhook } from "../../src/client/index.ts";
import { it as base, OTHER_SIGNER, RECIPIENT, SHORT_LEASE, SIGNER } from "../support/integration.ts";
import type { NodeProcess, Variables } from "../support/node-process.ts";
import { range } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type Received, WebhookReceiver } from "../support/webhook-receiver.ts";

const SECRET = "a cluster secret of this test".replaceAll(" ", "-");
const HOOKS: Variables = { FENCEPOST_CLUSTER_SECRET: SECRET, FENCEPOST_HOOK_NETWORKS: "127.0.0.1" };

const it = base.extend<{ readonly receiver: WebhookReceiver & { readonly url: string } }>({
  receiver: async ({ task: _ }, use) => {
    const receiver = new WebhookReceiver();
    const url = await receiver.listen();
    await use(Object.assign(receiver, { url }));
    await receiver.close();
  },
});

/** Sends through the SDK, which repeats a request that a busy node refuses. */
const send = (node: NodeProcess, signer: `0x${string}`, requestId: string) =>
  createClient({ url: node.url }).send({ signer, requestId, payload: { to: RECIPIENT, value: 1n } });

function headersOf({ headers }: Received): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

/** Verifies deliveries, drops repeats by their id, and returns the outcomes in the order of their first arrival. */
function taken({ secret }: Pick<NewWebhook, "secret">, received: readonly Received[]): readonly Completion[] {
  const verifier = new Verifier(secret);
  const seen = new Map<string, Completion>();
  for (const each of received) {
    const outcome = verifier.verify(each.body, headersOf(each)) as Completion;
    const id = String(each.headers["webhook-id"]);
    if (each.headers["fencepost-event"] === "completion" && !seen.has(id)) seen.set(id, outcome);
  }
  return [...seen.values()];
}

/** Nothing is missing, and each lane's outcomes arrived in the order of the feed. */
async function expectWhole(node: NodeProcess, webhook: NewWebhook, received: readonly Received[]) {
  const feed = await node.client.completionsPage({ after: 0, limit: 1_000 });
  const outcomes = taken(webhook, received);
  const bySeq = (a: Completion, b: Completion) => a.seq - b.seq;
  expect([...outcomes].sort(bySeq)).toEqual(feed.items);
  for (const signer of new Set(outcomes.map((each) => each.signer))) {
    const lane = outcomes.filter((each) => each.signer === signer);
    expect(lane).toEqual([...lane].sort(bySeq));
  }
}

const drained = (node: NodeProcess, { subscriberId }: NewWebhook, most: number) =>
  waitUntil(async () => {
    const { position, behind } = await node.client.webhook(subscriberId);
    return behind === 0 && position >= most;
  }, "every outcome is delivered, and the position is durable");

describe("webhooks for outcomes", () => {
  // protects [Webhooks] src/application/loops/subscriber-run.ts, src/adapters/webhooks/signed-webhooks.ts
  it("deliver every outcome, signed, in the order of its lane", async ({ simulated, nodes, receiver }) => {
    const node = await nodes.start(simulated.url, HOOKS);
    const webhook = await node.client.addWebhook({ name: "books", url: receiver.url, after: 0 });
    const sent = await Promise.all(range(20).map((n) => send(node, n % 2 === 0 ? SIGNER : OTHER_SIGNER, `order-${n}`)));
    for (const tx of sent) await tx.final();
    await drained(node, webhook, 20);
    await expectWhole(node, webhook, receiver.received);
    expect(receiver.received).toHaveLength(20);
    const [first] = receiver.received;
    const { "webhook-id": id, "webhook-timestamp": at } = headersOf(first as Received);
    const key = Buffer.from(webhook.secret.replace("whsec_", ""), "base64");
    const byHand = createHmac("sha256", key).update(`${id}.${at}.${first?.body}`).digest("base64");
    expect(first?.headers["webhook-signature"]).toBe(`v1,${byHand}`);
    expect(await node.client.webhook(webhook.subscriberId)).toMatchObject({
      ...{ state: "ACTIVE", position: 20, behind: 0, lastAnswer: { status: 200, reason: null }, failingSince: null },
      nodeId: node.nodeId,
    });
  });

  // protects [Webhooks] src/application/loops/deliveries.ts, src/adapters/postgres/statements/subscriber.ts
  it("go on at another node when the delivering one is killed", async ({ simulated, nodes, receiver }) => {
    const variables = { ...HOOKS, ...SHORT_LEASE };
    const both = await Promise.all([nodes.start(simulated.url, variables), nodes.start(simulated.url, variables)]);
    const webhook = await both[0].client.addWebhook({ name: "books", url: receiver.url, after: 0 });
    const owner = async () => (await both[0].client.webhook(webhook.subscriberId)).nodeId;
    await waitUntil(async () => (await owner()) !== null, "a node delivers");
    const name = await owner();
    const [dying, living] = both[0].nodeId === name ? [both[0], both[1]] : [both[1], both[0]];
    const first = await Promise.all(range(30).map((n) => send(living, SIGNER, `before-${n}`)));
    await waitUntil(() => receiver.received.length > 3, "some outcomes are delivered");
    dying.signal("SIGKILL");
    await dying.exited;
    for (const tx of first) await tx.final({ timeoutMs: 60_000 });
    const more = await Promise.all(range(5).map((n) => send(living, SIGNER, `after-${n}`)));
    for (const tx of more) await tx.final({ timeoutMs: 60_000 });
    await drained(living, webhook, 35);
    await expectWhole(living, webhook, receiver.received);
    expect((await living.client.webhook(webhook.subscriberId)).nodeId).toBe(living.nodeId);
  });
});
