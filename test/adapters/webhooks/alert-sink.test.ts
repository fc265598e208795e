import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AlertFormat,
  type AlertMessage,
  formatAlert,
  formatOf,
  refusalIn,
} from "../../../src/adapters/webhooks/alert-formats.ts";
import { type AlertSinkOptions, createAlertSink } from "../../../src/adapters/webhooks/alert-sink.ts";
import { guardedFetch } from "../../../src/adapters/webhooks/guarded-fetch.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { createHastyClock } from "../../support/hasty-clock.ts";
import { SIGNER, SIGNER_EIP55, sampleChecksum, sampleTxId } from "../../support/scripted-api.ts";
import { WebhookReceiver } from "../../support/webhook-receiver.ts";

type Alert = Extract<TelemetryEvent, { readonly type: "alert" }>;

function anAlert(overrides: Partial<Alert> = {}): Alert {
  const lane = { chainId: 1, signer: SIGNER };
  const what = {
    severity: "ERROR",
    code: "TX_STUCK",
    message: "nonce 7 holds up its lane",
    txId: sampleTxId(1),
  } as const;
  return { type: "alert", ...what, lane, ...overrides };
}

const message: AlertMessage = {
  status: "firing",
  severity: "CRITICAL",
  code: "DEEP_REORG",
  message: "a < b & c",
  nodeId: "node-a",
  at: "2026-01-01T00:00:00.000Z",
  count: 3,
  chainId: 1,
  signer: SIGNER_EIP55,
  txId: sampleTxId(1),
};

describe("an alert webhook's message format", () => {
  // protects [Explained, and said aloud] src/adapters/webhooks/alert-formats.ts
  it("is the alert itself as plain JSON for `json`", () => {
    expect(formatAlert("json", message)).toEqual(message);
  });

  // protects [Explained, and said aloud] src/adapters/webhooks/alert-formats.ts
  it("is a text with all fields for Slack, DingTalk and Feishu", () => {
    const slack = formatAlert("slack", message) as { text: string };
    expect(slack.text).toContain("[Fencepost CRITICAL] DEEP_REORG: a &lt; b &amp; c");
    for (const part of [SIGNER_EIP55, sampleTxId(1), "3 times", "node-a"]) expect(slack.text).toContain(part);
    const dingtalk = formatAlert("dingtalk", message) as { msgtype: string; text: { content: string } };
    expect(dingtalk).toMatchObject({ msgtype: "text", text: { content: expect.stringContaining("a < b & c") } });
    const feishu = formatAlert("feishu", message) as { msg_type: string; content: { text: string } };
    expect(feishu).toMatchObject({ msg_type: "text", content: { text: dingtalk.text.content } });
  });

  it.each([
    ["https://hooks.slack.com/services/T/B/x", "slack"],
    ["https://oapi.dingtalk.com/robot/send?access_token=x", "dingtalk"],
    ["https://open.feishu.cn/open-apis/bot/v2/hook/x", "feishu"],
    ["https://open.larksuite.com/open-apis/bot/v2/hook/x", "feishu"],
    ["https://alerts.example.com/hooks.slack.com", "json"],
  ])("is chosen by the URL: %s gets the format %s", (url, format) => {
    expect(formatOf(url)).toBe(format);
  });

  it.each<[AlertFormat, string, string | null]>([
    ["dingtalk", '{"errcode":0,"errmsg":"ok"}', null],
    ["dingtalk", '{"errcode":310000,"errmsg":"keywords not in content"}', "refused the alert: keywords not in content"],
    ["feishu", '{"code":0,"msg":"success"}', null],
    ["feishu", '{"code":19001,"msg":"param invalid"}', "refused the alert: param invalid"],
    ["slack", "ok", null],
    ["feishu", "<html>", null],
  ])("(%s) also decides whether a 200 response counts as a refusal, by its body: %s", (format, answer, refusal) => {
    expect(refusalIn(format, answer)).toBe(refusal);
  });
});

/** An alert sink with a manual clock, whose webhook accepts everything immediately. */
function quietSink(options: Partial<AlertSinkOptions> = {}) {
  const clock = createManualClock();
  const sent: AlertMessage[] = [];
  const lost: string[] = [];
  const fetch: typeof globalThis.fetch = async (_, init) => {
    sent.push(JSON.parse(String(init?.body)));
    return new Response("{}");
  };
  const url = "https://alerts.example.com/";
  const alerts = createAlertSink({
    ...{ url, clock, entropy: createSeededEntropy(1), nodeId: "node-a", checksum: sampleChecksum, fetch },
    onLost: (reason) => lost.push(reason),
    ...options,
  });
  return { alerts, clock, sent, lost };
}

describe("the alert webhook", () => {
  // protects [Explained, and said aloud] src/adapters/webhooks/alert-sink.ts
  it("gets each alert with its node, code and lane", async () => {
    const { alerts, sent } = quietSink();
    alerts.sink({ type: "chain.reachable", chainId: 1 });
    alerts.sink(anAlert());
    alerts.sink({ type: "alert", severity: "WARNING", code: "SLOW_SIGNING", message: "m" });
    await alerts.close();
    expect(sent).toMatchObject([{ status: "firing" }, { status: "firing" }]);
    expect(sent.map(({ status: _, ...rest }) => rest)).toEqual([
      {
        severity: "ERROR",
        code: "TX_STUCK",
        message: "nonce 7 holds up its lane",
        nodeId: "node-a",
        at: expect.stringMatching(/Z$/),
        count: 1,
        chainId: 1,
        signer: SIGNER_EIP55,
        txId: sampleTxId(1),
      },
      { severity: "WARNING", code: "SLOW_SIGNING", message: "m", nodeId: "node-a", at: expect.any(String), count: 1 },
    ]);
  });

  it("writes the lane's signer as people copy it, also in the text", async () => {
    const { alerts, sent } = quietSink();
    alerts.sink(anAlert({ message: `nonce 7 of ${anAlert().lane?.signer} holds up its lane` }));
    await alerts.close();
    expect(sent).toMatchObject([{ message: `nonce 7 of ${SIGNER_EIP55} holds up its lane` }]);
  });

  // protects [Explained, and said aloud] src/adapters/webhooks/alert-sink.ts
  it("gets a repeated alert only once per window", async () => {
    const { alerts, clock, sent } = quietSink({ windowMs: 60_000 });
    for (let n = 0; n < 5; n++) alerts.sink(anAlert({ message: `attempt ${n}` }));
    await clock.advance(59_000);
    expect(sent.map(({ count }) => count)).toEqual([1]);
    await clock.advance(1_000);
    expect(sent.map(({ count }) => count)).toEqual([1, 4]);
    await clock.advance(600_000);
    expect(sent).toHaveLength(2);
    alerts.sink(anAlert());
    await clock.advance(1);
    expect(sent).toHaveLength(3);
  });

  // protects [Explained, and said aloud] src/adapters/webhooks/alert-sink.ts
  it("gets alerts with a different code, lane or transaction as separate messages", async () => {
    const { alerts, clock, sent } = quietSink();
    alerts.sink(anAlert());
    alerts.sink(anAlert({ code: "LOW_BALANCE" }));
    alerts.sink(anAlert({ txId: sampleTxId(2) }));
    alerts.sink(anAlert({ lane: { chainId: 2, signer: SIGNER } }));
    await clock.advance(1);
    expect(sent).toHaveLength(4);
  });

  // protects [Signals] src/domain/troubles/table.ts
  it("gets alerts about different chains or endpoints as separate messages that name them", async () => {
    const { alerts, clock, sent } = quietSink();
    const down = { type: "alert", severity: "WARNING", code: "RPC_ENDPOINT_DOWN", message: "m" } as const;
    alerts.sink({ ...down, chainId: 1, endpoint: 0 });
    alerts.sink({ ...down, chainId: 1, endpoint: 1 });
    alerts.sink({ ...down, chainId: 10, endpoint: 0 });
    await clock.advance(1);
    expect(sent.map(({ chainId, endpoint }) => [chainId, endpoint])).toEqual([
      [1, 1],
      [1, 2],
      [10, 1],
    ]);
  });

  it("gets the resolution of each alert once", async () => {
    const { alerts, clock, sent } = quietSink({ windowMs: 60_000 });
    const over = { type: "alert.resolved", code: "CHAIN_DOWN", message: "chain 1 answers again", chainId: 1 } as const;
    alerts.sink(over);
    await clock.advance(1);
    expect(sent).toEqual([]);
    const down = { type: "alert", severity: "CRITICAL", code: "CHAIN_DOWN", message: "m", chainId: 1 } as const;
    alerts.sink(down);
    // Wait longer than the sink's time window: the sink must still remember the alert, because it is not resolved yet.
    await clock.advance(600_000);
    alerts.sink(over);
    alerts.sink(over);
    await clock.advance(1);
    expect(sent.map(({ status, severity, count }) => [status, severity, count])).toEqual([
      ["firing", "CRITICAL", 1],
      ["resolved", "CRITICAL", 1],
    ]);
    alerts.sink(down);
    await clock.advance(1);
    expect(sent).toHaveLength(3);
    expect((formatAlert("slack", sent[1] as AlertMessage) as { text: string }).text).toMatch(
      /^\[Fencepost OVER\] CHAIN_DOWN/,
    );
  });

  it("gets the number of unreported repeats when the sink is closed", async () => {
    const { alerts, sent } = quietSink();
    for (let n = 0; n < 3; n++) alerts.sink(anAlert());
    await alerts.close();
    expect(sent.map(({ count }) => count)).toEqual([1, 2]);
    alerts.sink(anAlert({ code: "PENDING_OLD" }));
    expect(sent).toHaveLength(2);
  });

  // protects [Explained, and said aloud] src/adapters/webhooks/alert-sink.ts
  it("has a queue of a hundred alerts: when it is full, the oldest is dropped and reported as lost", async () => {
    const never: typeof globalThis.fetch = (_, init) =>
      new Promise((__, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
    const { alerts, clock, lost } = quietSink({ fetch: never });
    for (let n = 0; n < 150; n++) alerts.sink(anAlert({ txId: sampleTxId(n) }));
    // Of 150 alerts, one is being sent and a hundred are queued, so 49 were dropped.
    expect(lost).toEqual(Array.from({ length: 49 }, () => "the queue is full"));
    const closing = alerts.close();
    await clock.advance(2_000);
    await closing;
  });
});

describe("an alert webhook on a real socket", () => {
  let receiver: WebhookReceiver;
  let url: string;
  beforeEach(async () => {
    receiver = new WebhookReceiver();
    url = await receiver.listen();
  });
  afterEach(() => receiver.close());

  function realSink(format: AlertFormat = "json") {
    const lost: string[] = [];
    const fetch = guardedFetch(["127.0.0.1"], "fencepost/0.0.0");
    const ports = { clock: createHastyClock(), entropy: createSeededEntropy(1), fetch };
    const alerts = createAlertSink({ ...ports, url, format, nodeId: "node-a", onLost: (reason) => lost.push(reason) });
    return { alerts, lost };
  }

  it("gets the alert by a retry after it responded with 500", async () => {
    let failures = 2;
    receiver.answer = (response) => response.writeHead(failures-- > 0 ? 500 : 200).end("{}");
    const { alerts, lost } = realSink();
    alerts.sink(anAlert());
    await expect.poll(() => receiver.received.length).toBe(3);
    await alerts.close();
    expect(lost).toEqual([]);
  });

  it("loses the alert if it refuses or hangs, without any other effect", async () => {
    receiver.answer = (response) => response.writeHead(400).end();
    const refused = realSink();
    refused.alerts.sink(anAlert());
    await expect.poll(() => refused.lost).toEqual(["the server answered HTTP 400"]);
    await refused.alerts.close();
    receiver.answer = (response) => response.end('{"errcode":1,"errmsg":"no"}');
    const declined = realSink("dingtalk");
    declined.alerts.sink(anAlert());
    await expect.poll(() => declined.lost).toEqual(["the webhook refused the alert: no"]);
    await declined.alerts.close();
    receiver.answer = () => undefined;
    const silent = realSink();
    silent.alerts.sink(anAlert());
    await silent.alerts.close();
    expect(silent.lost).toHaveLength(1);
  });
});
