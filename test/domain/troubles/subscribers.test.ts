import { describe, expect, it } from "vitest";
import { ofSubscriber, subscriberTrouble } from "../../../src/domain/troubles/subscribers.ts";

const NOW = new Date("2026-11-02T10:00:00.000Z");
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000);

const subscriber = (of: Partial<Parameters<typeof subscriberTrouble>[0]> = {}) => ({
  ...{ subscriberId: "019a4b7e-0000-7000-8000-000000000001", name: "books", position: 41, paused: null },
  ...{ failingSince: null, lastAnswer: null, nextTryAt: null, changedAt: ago(900), owner: { nodeId: "node" } },
  ...{ behind: 7, behindSince: ago(300), readAt: NOW, ...of },
});

describe("the troubles of a webhook", () => {
  it("are none while it is delivered, however far it is behind", () => {
    expect(ofSubscriber(subscriber())).toEqual([]);
    expect(ofSubscriber(subscriber({ failingSince: ago(59) }))).toEqual([]);
    expect(ofSubscriber(subscriber({ owner: null, behind: 0, behindSince: null }))).toEqual([]);
    expect(ofSubscriber(subscriber({ owner: null, behindSince: ago(59) }))).toEqual([]);
  });

  it("name the last answer of a receiver that fails, with position and backlog", () => {
    const lastAnswer = { status: 503, reason: null, at: ago(5) };
    expect(ofSubscriber(subscriber({ failingSince: ago(60), lastAnswer }))).toMatchObject([
      {
        ...{ code: "WEBHOOK_FAILING", severity: "WARNING", since: ago(60), subscriber: "books" },
        sentence: "The receiver of books does not take outcomes: HTTP 503 (position 41, 7 behind the feed).",
        actions: [{ method: "POST", path: "/api/v1/webhooks/019a4b7e-0000-7000-8000-000000000001/pause" }],
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

  it("say that no node delivers", () => {
    expect(ofSubscriber(subscriber({ owner: null }))).toMatchObject([
      { code: "WEBHOOK_UNSERVED", severity: "ERROR", since: ago(300) },
    ]);
  });
});
