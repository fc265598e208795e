import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, createServer as createPlainServer, type Socket } from "node:net";
import { Webhook as Verifier } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { guardedAgent } from "../../../src/adapters/webhooks/guarded-fetch.ts";
import { createSignedWebhooks } from "../../../src/adapters/webhooks/signed-webhooks.ts";
import type { WebhookMessage } from "../../../src/ports/webhook-sender.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { SERVER_CERTIFICATE, SERVER_KEY } from "../../support/certificates.ts";
import { deferred } from "../../support/deferred.ts";
import { sampleCompletion } from "../../support/scripted-api.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { WebhookReceiver } from "../../support/webhook-receiver.ts";

const [OLD, NEW] = ["an-old-cluster-secret-of-many", "a-new-cluster-secret-of-many"];
const ID = "019a4b7e-0000-7000-8000-000000000001";
const NAME = { subscriberId: ID, generation: 1 };

const receiver = new WebhookReceiver();
let url = "";
beforeAll(async () => {
  url = await receiver.listen();
});
afterEach(() => {
  receiver.received.length = 0;
  receiver.answer = (response) => response.end("{}");
});
afterAll(() => receiver.close());

function aSender({ secrets = [OLD], networks = ["127.0.0.1"], clock = systemClock } = {}) {
  const present = ({ seq }: { readonly seq: number }) => ({ seq });
  const dispatcher = guardedAgent(networks);
  return createSignedWebhooks({ clock, secrets, present, dispatcher, userAgent: "fencepost/test" });
}

const message = (of: Partial<WebhookMessage> = {}): WebhookMessage => ({
  ...{ url, subscriberId: ID, generations: [1], eventId: "1_7" },
  ...{ event: { kind: "completion", completion: sampleCompletion({ seq: 7 }) }, ...of },
});
const answering = (status: number, headers: Record<string, string> = {}) => {
  receiver.answer = (response: ServerResponse) => void response.writeHead(status, headers).end("{}");
};
const verify = (secret: string) => {
  const [received] = receiver.received;
  const headers = Object.fromEntries(Object.entries(received?.headers ?? {}).map(([name, text]) => [name, `${text}`]));
  return new Verifier(secret).verify(received?.body ?? "", headers);
};

describe("the sender of webhooks", () => {
  it("signs as Standard Webhooks, with an id that is the same for every delivery of an outcome", async () => {
    const sender = aSender();
    expect(await sender.send(message())).toEqual({ kind: "status", status: 200, retryAfterMs: null });
    expect(verify(sender.secretOf(NAME)?.secret ?? "")).toEqual({ seq: 7 });
    expect(receiver.received[0]?.headers).toMatchObject({
      ...{ "webhook-id": `${ID}_1_7`, "fencepost-event": "completion", "content-type": "application/json" },
    });
  });

  // protects [Webhooks] src/adapters/webhooks/signed-webhooks.ts
  it("derives another secret for each subscriber, generation and cluster secret, and signs with all", async () => {
    const both = aSender({ secrets: [NEW, OLD] });
    const secretOf = (of: Partial<typeof NAME>, secrets = [OLD]) => aSender({ secrets }).secretOf({ ...NAME, ...of });
    const other = `${ID.slice(0, -1)}2`;
    const all = [secretOf({}), secretOf({ generation: 2 }), secretOf({ subscriberId: other }), secretOf({}, [NEW])];
    expect(new Set(all.map((each) => each?.secret)).size).toBe(4);
    await both.send(message({ generations: [2, 1] }));
    for (const of of [secretOf({}), secretOf({ generation: 2 }), secretOf({}, [NEW])]) verify(of?.secret ?? "");
    expect(() => verify(secretOf({ subscriberId: other })?.secret ?? "")).toThrow();
    expect(both.canSign(NAME, secretOf({})?.secretId ?? "")).toBe(true);
    expect(aSender({ secrets: [NEW] }).canSign(NAME, secretOf({})?.secretId ?? "")).toBe(false);
    expect(aSender({ secrets: [] }).secretOf(NAME)).toBeNull();
  });

  it("distinguishes the events of the feed by a type, which an outcome has not", async () => {
    await aSender().send(message({ event: { kind: "epoch.changed", epoch: 2, resumeAfter: 6 }, eventId: "2_epoch" }));
    expect(JSON.parse(receiver.received[0]?.body ?? "")).toEqual({ type: "epoch.changed", epoch: 2, resumeAfter: 6 });
    expect(receiver.received[0]?.headers["fencepost-event"]).toBe("epoch.changed");
  });

  it.each([
    [429, { "retry-after": "30" }, 30_000],
    [410, {}, null],
  ] as const)("reports the status %i and how long the receiver asks to wait", async (status, headers, retryAfterMs) => {
    answering(status, headers);
    expect(await aSender().send(message())).toEqual({ kind: "status", status, retryAfterMs });
  });

  // protects [Attacks] src/adapters/webhooks/signed-webhooks.ts
  it("follows no redirect", async () => {
    answering(307, { location: `${url}/elsewhere` });
    expect(await aSender().send(message())).toMatchObject({ status: 307 });
    expect(receiver.received).toHaveLength(1);
  });

  it.each([
    ...["[::1]", "[::ffff:127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[fd00:ec2::254]", "0.0.0.0"],
    ...["0", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "192.88.99.1", "[2002:7f00:1::]"],
  ])(
    // protects [Attacks] src/adapters/webhooks/networks.ts, src/adapters/webhooks/guarded-fetch.ts
    "connects to no private address that is written as %s",
    async (host) => {
      const { port } = new URL(url);
      const answer = await aSender({ networks: [] }).send(message({ url: `http://${host}:${port}/` }));
      expect(answer).toEqual({ kind: "silence", reason: "it cannot be reached (private address)" });
      expect(receiver.received).toEqual([]);
    },
  );

  // protects [Attacks] src/adapters/webhooks/guarded-fetch.ts
  it("sends nothing to a server whose certificate is of another name or authority", async () => {
    let asked = 0;
    const server = createServer({ key: SERVER_KEY, cert: SERVER_CERTIFICATE }, (_, response) => {
      asked++;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const answer = await aSender().send(message({ url: `https://127.0.0.1:${port}/` }));
    expect(answer).toMatchObject({ kind: "silence", reason: expect.stringMatching(/\((UNABLE|SELF|ERR_TLS)\w+\)$/) });
    expect(asked).toBe(0);
    await new Promise((resolve) => server.close(resolve));
  });

  it.each([
    ["headers that never end", "HTTP/1.1 200 OK\r\nx-a: ", "", false],
    ["nothing but interim responses", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100), "", false],
    ["headers without limit", "HTTP/1.1 200 OK\r\nx-a: ", "a".repeat(65_536), true],
    ["something that is not HTTP", "220 smtp.example ESMTP\r\n", "", true],
  ])(
    // protects [Attacks] src/adapters/webhooks/signed-webhooks.ts
    "takes %s for silence",
    async (_, begin, more, isAtOnce) => {
      const clock = createManualClock();
      const sockets = new Set<Socket>();
      const arrived = deferred<void>();
      const server = createPlainServer((socket) => {
        sockets.add(socket.on("error", () => undefined));
        socket.once("data", () => {
          socket.write(begin);
          const drip = () => void (socket.destroyed || socket.write(more, () => setImmediate(drip)));
          if (more !== "") drip();
          arrived.resolve();
        });
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as AddressInfo;
      const sent = aSender({ clock }).send(message({ url: `http://127.0.0.1:${port}/` }));
      await arrived.promise;
      if (!isAtOnce) await clock.advance(10_000);
      expect(await sent).toMatchObject({ kind: "silence" });
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  );

  // protects [Attacks] src/adapters/webhooks/guarded-fetch.ts, src/adapters/webhooks/signed-webhooks.ts
  it("connects to no private address that is not allowed, and does not show it", async () => {
    const sender = aSender({ networks: [] });
    for (const place of [url, url.replace("127.0.0.1", "localhost"), "http://169.254.169.254/latest"]) {
      const answer = await sender.send(message({ url: place }));
      expect(answer).toEqual({ kind: "silence", reason: "it cannot be reached (private address)" });
    }
    expect(receiver.received).toEqual([]);
  });

  // protects [Attacks] src/adapters/webhooks/signed-webhooks.ts
  it("waits ten seconds for a status, and for no endless or slow rest of a response", async () => {
    const clock = createManualClock();
    const sender = aSender({ clock });
    receiver.answer = () => undefined;
    const silent = sender.send(message());
    await waitUntil(() => receiver.received.length === 1, "the request arrived");
    await clock.advance(10_000);
    expect(await silent).toEqual({ kind: "silence", reason: "no HTTP response in 10 s" });
    receiver.answer = (response) => void response.writeHead(200).write("{");
    expect(await aSender().send(message())).toMatchObject({ status: 200 });
    receiver.answer = (response) => {
      response.writeHead(205);
      const pour = () => void response.write("x".repeat(65_536), (error) => error ?? pour());
      pour();
    };
    expect(await aSender().send(message())).toMatchObject({ status: 205 });
  });

  it("stops a delivery when its run ends", async () => {
    const stopping = new AbortController();
    receiver.answer = () => undefined;
    const sent = aSender().send(message({ signal: stopping.signal }));
    await waitUntil(() => receiver.received.length === 1, "the request arrived");
    stopping.abort();
    expect(await sent).toEqual({ kind: "silence", reason: "the delivery was stopped" });
  });
});
