/** Webhooks of API keys that are limited to signers or chains, and what a request may name. */
import { beforeEach, describe, expect, it } from "vitest";
import { type WebhookPorts, webhookOperations } from "../../../src/application/operations/webhooks.ts";
import { NO_QUOTAS, type Principal, SCOPES } from "../../../src/domain/keys/principal.ts";
import type { WebhookSender } from "../../../src/ports/webhook-sender.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { MemoryDatabase } from "../../doubles/memory-store.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { createFakeCodec } from "../../support/fake-codec.ts";
import { limitedTo } from "../../support/limited-api.ts";
import { scriptedApi } from "../../support/scripted-api.ts";
import { CHAIN_ID, SIGNER, SIGNERS } from "../../support/world.ts";

const OTHER = SIGNERS.at(-1) as typeof SIGNER;
const ACTOR = "operator:mine";
const key = (wishes: Partial<Principal> = {}): Principal => ({
  ...{ name: "mine", scopes: new Set(SCOPES), signers: new Set([SIGNER]), chains: new Set([CHAIN_ID]) },
  ...{ ...NO_QUOTAS, ...wishes },
});

let calls: ReturnType<typeof webhookOperations>;
let sender: WebhookSender;
let database: MemoryDatabase;

beforeEach(() => {
  const clock = createManualClock();
  sender = {
    secretOf: ({ generation }) => ({ secret: `whsec_${generation}`, secretId: `${generation}` }),
    canSign: () => true,
    send: async () => ({ kind: "status", status: 204, retryAfterMs: null }),
  };
  database = new MemoryDatabase(clock);
  const store = database.connect() as unknown as WebhookPorts["store"];
  const wakeUps = { notify: () => undefined } as unknown as WebhookPorts["wakeUps"];
  const ports = { store, wakeUps, clock, codec: createFakeCodec(), entropy: createSeededEntropy(1) };
  calls = webhookOperations({
    ...ports,
    webhooks: {
      secretOf: (name) => sender.secretOf(name),
      canSign: (...given) => sender.canSign(...given),
      send: (message) => sender.send(message),
    },
    webhooksChanged: () => undefined,
  });
});

const by = (principal: Principal) => limitedTo(principal, scriptedApi(calls));
const asked = (request: object, subscriberId = "") => ({ subscriberId, request, actor: ACTOR });
const books = (of: object = {}) => asked({ name: "books", url: "https://books.example/?token=secret", ...of });

describe("webhooks of a limited API key", () => {
  // protects [Attacks] src/application/authority.ts, src/application/operations/webhooks.ts
  it("get the outcomes of its own signers and chains alone", async () => {
    const api = by(key());
    expect(await api.addWebhook(books())).toMatchObject({ signers: [SIGNER], chains: [CHAIN_ID], createdBy: "mine" });
    for (const of of [{ signers: [OTHER] }, { signers: [SIGNER, OTHER] }, { chains: [10] }]) {
      await expect(api.addWebhook(books({ name: "more", ...of }))).rejects.toMatchObject({ code: "FORBIDDEN" });
      const { subscriberId } = (await api.webhooks())[0] ?? { subscriberId: "" };
      await expect(api.changeWebhook(asked(of, subscriberId))).rejects.toMatchObject({ code: "FORBIDDEN" });
    }
    const { subscriberId } = (await api.webhooks())[0] ?? { subscriberId: "" };
    for (const of of [{ signers: [] }, { chains: [] }, { createdBy: "other" }]) {
      await expect(api.changeWebhook(asked(of, subscriberId))).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    }
    const everything = await api.changeWebhook(asked({ signers: null, chains: null }, subscriberId));
    expect(everything).toMatchObject({ signers: [SIGNER], chains: [CHAIN_ID] });
    const widened = await api.changeWebhook(asked({ states: ["CONFIRMED"] }, subscriberId));
    expect(widened).toMatchObject({ signers: [SIGNER], chains: [CHAIN_ID], states: ["CONFIRMED"] });
  });

  // protects [Attacks] src/application/authority.ts, src/application/operations/webhooks.ts
  it("are the only ones that it sees, changes, tests or removes", async () => {
    const all = await calls.addWebhook(books());
    const api = by(key());
    const { subscriberId: id } = all;
    expect(await api.webhooks()).toEqual([]);
    for (const refused of [
      api.webhook(id),
      api.changeWebhook(asked({ url: "https://attacker.example/" }, id)),
      api.pauseWebhook(asked({}, id)),
      api.resumeWebhook(asked({}, id)),
      api.replayWebhook(asked({ after: 0 }, id)),
      api.testWebhook(asked({}, id)),
      api.rotateWebhook(asked({}, id)),
      api.removeWebhook(asked({}, id)),
    ]) {
      await expect(refused).rejects.toMatchObject({ code: "NOT_FOUND" });
    }
    expect(await calls.webhook(id)).toMatchObject({ state: "ACTIVE", generation: 1 });
    expect(await by(key({ signers: null, chains: null })).webhooks()).toHaveLength(1);
  });
});

describe("a request about a webhook", () => {
  it("is performed, and shows no secret of the URL", async () => {
    const { subscriberId: id, secret, url } = await calls.addWebhook(books({ giveUpAfterSeconds: 60 }));
    expect({ secret, url }).toEqual({ secret: "whsec_1", url: "https://books.example/?***" });
    expect(await calls.pauseWebhook(asked({ reason: "maintenance" }, id))).toMatchObject({
      ...{ state: "PAUSED", paused: { by: "OPERATOR", why: "maintenance" }, giveUpAfterSeconds: 60 },
    });
    expect(await calls.resumeWebhook(asked({}, id.toUpperCase()))).toMatchObject({ state: "ACTIVE" });
    expect(await calls.rotateWebhook(asked({}, id))).toMatchObject({ generation: 2, secret: "whsec_2" });
    expect(await calls.replayWebhook(asked({ after: 0 }, id))).toMatchObject({ position: 0 });
    expect(await calls.testWebhook(asked({}, id))).toMatchObject({ delivered: true, status: 204, reason: "HTTP 204" });
    expect(await calls.removeWebhook(asked({}, id))).toEqual({ subscriberId: id, name: "books" });
    expect(await calls.webhooks()).toEqual([]);
  });

  it.each([
    ["name", { name: "my books" }],
    ["url", { url: "ftp://books.example/" }],
    ["url", { url: "https://user:password@books.example/" }],
    ["url", { url: "https://books.example/#part" }],
    ["url", { url: 7 }],
    ["signers.0", { signers: ["0x1"] }],
    ["states.0", { states: ["MINED"] }],
    ["chains", { chains: [] }],
    ["keys.0", { keys: [""] }],
    ["after", { after: -1 }],
    ["after", { after: 1 }],
    ["giveUpAfterSeconds", { giveUpAfterSeconds: 59 }],
    ["webhook", { webhook: true }],
  ])("is refused with the path of the field: %s %j", async (path, of) => {
    await expect(calls.addWebhook(books(of))).rejects.toMatchObject({ code: "INVALID_REQUEST", extras: { path } });
    expect(await calls.webhooks()).toEqual([]);
  });

  // protects [Webhooks] src/application/operations/webhooks.ts
  it("begins at no position below what retention has kept, nor above the end of the feed", async () => {
    const { subscriberId: id } = await calls.addWebhook(books());
    Object.assign(database.state.feed, { lastSeq: 9, truncatedThrough: 5 });
    const below = { code: "FEED_TRUNCATED", extras: { resumeAfter: 5 } };
    await expect(calls.replayWebhook(asked({ after: 4 }, id))).rejects.toMatchObject(below);
    await expect(calls.addWebhook(books({ name: "more", after: 4 }))).rejects.toMatchObject(below);
    await expect(calls.replayWebhook(asked({ after: 10 }, id))).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    expect(await calls.webhook(id)).toMatchObject({ position: 0 });
    expect(await calls.replayWebhook(asked({ after: 5 }, id))).toMatchObject({ position: 5 });
  });

  it("is refused if the name is taken, or the node has no secret to derive others from", async () => {
    await calls.addWebhook(books());
    await expect(calls.addWebhook(books())).rejects.toMatchObject({ code: "CONFLICT" });
    sender = { ...sender, secretOf: () => null };
    const refused = calls.addWebhook(books({ name: "more" }));
    await expect(refused).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect(refused).rejects.toThrow("FENCEPOST_CLUSTER_SECRET");
  });
});
