import { describe, expect, it } from "vitest";
import { ofSubscriber, subscriberTrouble } from "../../../src/domain/troubles/subscribers.ts";

const NOW = new Date("2026-11-02T10:00:00.000Z");
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000);

const subscriber = (of: Partial<Parameters<typeof subscriberTrouble>[0]> = {}) => ({
  ...{ subscriberId: "019a4b7e-0000-7000-8000-000000000001", name: "books", position: 41, paused: null },
  ...{ failingSince: null, lastAnswer: null, nextTryAt: null, changedAt: ago(900), owner: { nodeId: "node" } },
  ...{ behind: 7, behindSince: ago(300), readAt: NOW, ...of },
});

const PATH = "/api/v1/webhooks/019a4b7e-0000-7000-8000-000000000001";
const PLACE = "(position 41; 7 behind the feed, the oldest for 5 min; last answer HTTP 503, 5 s ago)";

describe("the troubles of a webhook", () => {
  it("are none while outcomes are delivered in time", () => {
    expect(ofSubscriber(subscriber({ behindSince: ago(299) }))).toEqual([]);
    expect(ofSubscriber(subscriber({ changedAt: ago(299) })), "after a replay").toEqual([]);
    expect(ofSubscriber(subscriber({ failingSince: ago(59), behindSince: ago(59) }))).toEqual([]);
    expect(ofSubscriber(subscriber({ owner: null, behind: 0, behindSince: null }))).toEqual([]);
    expect(ofSubscriber(subscriber({ owner: null, behindSince: ago(59) }))).toEqual([]);
  });

  it("name the last answer of a receiver that fails, with position and backlog", () => {
    const lastAnswer = { status: 503, reason: null, at: ago(5) };
    expect(ofSubscriber(subscriber({ failingSince: ago(60), lastAnswer }))).toMatchObject([
      {
        ...{ code: "WEBHOOK_FAILING", severity: "WARNING", since: ago(60), subscriber: "books" },
        sentence: `The receiver of books does not take outcomes ${PLACE}.`,
        actions: [
          { method: "POST", path: `${PATH}/resume` },
          { method: "POST", path: `${PATH}/pause` },
        ],
      },
    ]);
  });

  it.each([
    ["GONE", "ERROR", "The receiver of books answered 410 Gone"],
    ["GAVE_UP", "ERROR", "The receiver of books failed for too long, and was given up: HTTP 500"],
    ["OPERATOR", "WARNING", "Somebody paused the subscriber books (HTTP 500)"],
  ] as const)("say why it is paused: %s", (by, severity, sentence) => {
    const [row] = ofSubscriber(subscriber({ paused: { by, why: "HTTP 500", at: ago(9) }, owner: null }));
    expect(row).toMatchObject({ code: "WEBHOOK_PAUSED", severity, since: ago(9) });
    expect(row?.sentence).toContain(sentence);
    expect(row?.actions).toMatchObject([{ path: expect.stringMatching(/\/resume$/) }]);
    expect(subscriberTrouble(subscriber({ paused: { by, why: "", at: ago(9) } }))?.alerts).toBe(by !== "OPERATOR");
  });

  // protects [Webhooks] src/domain/troubles/subscribers.ts
  it("include a receiver that takes outcomes slower than they arrive", () => {
    const lastAnswer = { status: 200, reason: null, at: ago(0) };
    expect(ofSubscriber(subscriber({ lastAnswer }))).toMatchObject([
      {
        ...{ code: "WEBHOOK_BEHIND", severity: "WARNING", since: ago(300), subscriber: "books" },
        sentence: expect.stringContaining("slower than they arrive (position 41; 7 behind the feed, the oldest for 5"),
        actions: [{ method: "GET", path: PATH }],
      },
    ]);
  });

  it.each([
    { paused: { by: "GONE", why: "HTTP 410", at: ago(9) }, owner: null },
    { failingSince: ago(60) },
    { owner: null },
    {},
  ] as const)("have position, backlog, age and last answer in their sentence: %o", (of) => {
    const lastAnswer = { status: 503, reason: null, at: ago(5) };
    expect(ofSubscriber(subscriber({ lastAnswer, ...of }))[0]?.sentence).toContain(PLACE);
    const silent = { lastAnswer: { status: null, reason: "timed out", at: ago(5) } };
    expect(ofSubscriber(subscriber({ ...silent, ...of }))[0]?.sentence).toContain("last answer timed out, 5 s ago");
  });

  it("say that no node delivers", () => {
    expect(ofSubscriber(subscriber({ owner: null }))).toMatchObject([
      { code: "WEBHOOK_UNSERVED", severity: "ERROR", since: ago(300) },
    ]);
  });
});
