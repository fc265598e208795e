import { createHmac } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { guardedFetch } from "../../../src/adapters/webhooks/guarded-fetch.ts";
import { createHttpStuckHook } from "../../../src/adapters/webhooks/http-stuck-hook.ts";
import type { StuckContext } from "../../../src/ports/stuck-hook.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { createHastyClock } from "../../support/hasty-clock.ts";
import { WebhookReceiver } from "../../support/webhook-receiver.ts";

const context: StuckContext = {
  trigger: "headAge",
  chainId: 1,
  signer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
  txId: "019a4b7e-0000-7000-8000-000000000001",
  requestId: "order-42",
  nonce: 7,
  state: "TRACKING",
  subState: "BROADCAST",
  attempts: [],
  submitAttempts: 1,
  lastError: null,
  lastErrorClass: "accepted",
  ageSeconds: 400,
  queueDepth: 3,
  headOfLine: true,
  metadata: { customer: "c-17" },
};
const decision = { action: "CANCEL", reason: "too old" };

let receiver: WebhookReceiver;
let url: string;
const clock = createHastyClock();
beforeEach(async () => {
  receiver = new WebhookReceiver();
  url = await receiver.listen();
});
afterEach(() => receiver.close());

function hook(options: { secret?: string } = {}) {
  return createHttpStuckHook({
    url,
    clock,
    fetch: guardedFetch(["127.0.0.1"], "fencepost/0.0.0"),
    entropy: createSeededEntropy(1),
    ...options,
  });
}

describe("the client of the HTTP hook for stuck transactions", () => {
  // protects [The hook] src/adapters/webhooks/http-stuck-hook.ts
  it("posts the transaction's context, signed with HMAC", async () => {
    receiver.answer = (response) => response.end(JSON.stringify(decision));
    expect(await hook({ secret: "s3cret" }).decide(context)).toEqual(decision);
    const [request] = receiver.received;
    expect(JSON.parse(request?.body ?? "")).toEqual(context);
    const [, at, digest] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(request?.headers["fencepost-signature"])) ?? [];
    expect(Math.abs(Number(at) - clock.now().getTime() / 1_000)).toBeLessThan(5);
    expect(digest).toBe(createHmac("sha256", "s3cret").update(`${at}.${request?.body}`).digest("hex"));
  });

  it("sends no signature if no secret is configured", async () => {
    receiver.answer = (response) => response.end(JSON.stringify(decision));
    await hook().decide(context);
    expect(receiver.received[0]?.headers).not.toHaveProperty("fencepost-signature");
  });

  // protects [The hook] src/adapters/webhooks/http-stuck-hook.ts
  it("retries after 5xx and 429, with the same idempotency key", async () => {
    const statuses = [503, 429];
    receiver.answer = (response) => {
      const status = statuses.shift();
      if (status === undefined) response.end(JSON.stringify(decision));
      else response.writeHead(status).end();
    };
    expect(await hook().decide(context)).toEqual(decision);
    const keys = receiver.received.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("retries after 5xx, but not after 403", async () => {
    receiver.answer = (response) => response.writeHead(502).end("<html>");
    await expect(hook().decide(context)).rejects.toThrow("the server answered HTTP 502");
    expect(receiver.received).toHaveLength(3);
    receiver.received.length = 0;
    receiver.answer = (response) => response.writeHead(403).end();
    await expect(hook().decide(context)).rejects.toThrow("the server answered HTTP 403");
    expect(receiver.received).toHaveLength(1);
  });

  // protects [The hook] src/adapters/webhooks/post-json.ts
  it("limits the time and the size of a response", async () => {
    receiver.answer = (response) => response.end("<html>");
    await expect(hook().decide(context)).rejects.toThrow("not JSON");
    receiver.answer = (response) => response.end("x".repeat(300 * 1024));
    await expect(hook().decide(context)).rejects.toThrow("more than");
    receiver.answer = (response, { path }) =>
      path === "/elsewhere"
        ? response.end(JSON.stringify(decision))
        : response.writeHead(307, { location: "/elsewhere" }).end();
    await expect(hook().decide(context)).rejects.toThrow();
    expect(receiver.received.map(({ path }) => path)).not.toContain("/elsewhere");
    receiver.answer = () => undefined;
    receiver.received.length = 0;
    await expect(hook().decide(context)).rejects.toThrow("no HTTP response in 4000 ms");
    expect(receiver.received).toHaveLength(3);
  });
});
