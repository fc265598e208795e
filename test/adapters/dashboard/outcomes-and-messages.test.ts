import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Attention } from "../../../src/contract/schemas/attention.ts";
import { browserPath, launchBrowser } from "../../support/browser.ts";
import { night } from "../../support/staged/night.ts";
import {
  FAILING_WEBHOOK,
  PAUSED_WEBHOOK,
  SECRET,
  WAITING_SIGNATURE,
} from "../../support/staged/outcomes-and-messages.ts";
import type { Asked, Scene } from "../../support/staged/staged-node.ts";
import { Refusal } from "../../support/staged/staged-node.ts";
import { AXE, violationsOn } from "./accessibility.ts";
import { leave, shows, visit } from "./visit.ts";

const WEBHOOK = `#/webhooks/${FAILING_WEBHOOK}`;
const SIGNATURE = `#/signatures/${WAITING_SIGNATURE}`;
const PAGES = ["#/webhooks", WEBHOOK, `#/webhooks/${PAUSED_WEBHOOK}`, "#/signatures", SIGNATURE];
const SPENDER = "0x000000000022d473030f116ddee9f6b43ac78ba3";

/** Answers of the node to requests that change something, by the end of their path. */
const answering =
  (answers: Readonly<Record<string, unknown>>): Scene =>
  ({ method, path }) =>
    method === "GET" ? undefined : Object.entries(answers).find(([end]) => path.endsWith(end))?.[1];

const changes = (asked: readonly Asked[]) => asked.filter(({ method }) => method !== "GET");
const usual = night({ now: () => new Date() });

/** A night whose only row of attention is this one. */
const troubled =
  (item: Partial<Attention["items"][number]>): Scene =>
  (asked) => {
    if (asked.path !== "/attention" || asked.query.has("wait")) return undefined;
    const [first] = (usual(asked) as Attention).items;
    return {
      ...(usual(asked) as Attention),
      items: [{ ...first, txId: null, signer: null, chainId: null, nonce: null, ...item }],
    };
  };

let browser: Browser;

describe.skipIf(browserPath === undefined)("webhooks on the dashboard", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  // protects [The dashboard] src/adapters/dashboard/public/pages/webhooks.js
  it("are listed with state, position, backlog, its age and the last answer", async () => {
    const { page, open, complaints } = await visit(browser);
    await open("#/webhooks");
    const row = page.locator("tbody tr", { hasText: "ledger" });
    expect(await row.locator("td").allTextContents()).toEqual([
      ...["ledgerhttps://ledger.example/hooks/fencepost", "failing", "19,870", "591", "31 min"],
      ...["HTTP 503 1 min ago", "31 min ago", "node-b"],
    ]);
    await row.locator("a.name").click();
    await shows(page, ".facts div", "591 outcomes, the oldest for 31 min");
    await shows(page, ".facts div", "CONFIRMED, FAILED_FINAL");
    expect(complaints).toEqual([]);
  });

  // protects [The dashboard] src/adapters/dashboard/public/parts/action-dialog.js
  it("are made in a dialog that shows the secret once", async () => {
    const { page, node, open } = await visit(browser, { scene: answering({ "/webhooks": { secret: SECRET } }) });
    await open("#/webhooks");
    await page.getByRole("button", { name: "Add a webhook" }).click();
    const dialog = page.locator("#action-dialog");
    await dialog.locator("input[name=name]").fill("books");
    await dialog.locator("input[name=url]").fill("https://books.example/outcomes");
    await dialog.locator("summary", { hasText: "Only some outcomes" }).click();
    await dialog.locator("input[name=chains]").fill("1 8453");
    await dialog.locator("input[name=states]").fill("CONFIRMED");
    await dialog.locator("input[name=after]").fill("0");
    await dialog.locator("button[type=submit]").click();
    await shows(page, "#action-dialog .secret", SECRET);
    expect(changes(node.asked)).toMatchObject([
      {
        ...{ method: "POST", path: "/webhooks" },
        body: {
          ...{
            name: "books",
            url: "https://books.example/outcomes",
            chains: [1, 8453],
            states: ["CONFIRMED"],
            after: 0,
          },
        },
      },
    ]);
    await page.getByRole("button", { name: "I have kept it" }).click();
    expect(await page.content()).not.toContain(SECRET);
  });

  it("keep no secret in the page if its dialog is closed by Escape", async () => {
    const { page, open } = await visit(browser, { scene: answering({ "/rotate": { secret: SECRET } }) });
    await open(WEBHOOK);
    await page.getByRole("button", { name: "Rotate the secret" }).click();
    await page.locator("#action-dialog textarea").fill("the old one leaked");
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, "#action-dialog .secret", SECRET);
    await page.keyboard.press("Escape");
    await page.locator("#action-dialog[open]").waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(SECRET);
  });

  it.each([
    ["Pause the webhook", FAILING_WEBHOOK, "pause", {}, {}],
    ["Resume the webhook", PAUSED_WEBHOOK, "resume", {}, {}],
    ["Replay", FAILING_WEBHOOK, "replay", { after: "1200" }, { after: 1_200 }],
    ["Rotate the secret", FAILING_WEBHOOK, "rotate", { overlapHours: "2" }, { overlapSeconds: 7_200 }],
  ] as const)("offer: %s", async (label, id, word, fields, sent) => {
    const { page, node, open } = await visit(browser);
    await open(`#/webhooks/${id}`);
    await page.getByRole("button", { name: label }).click();
    for (const [name, value] of Object.entries(fields))
      await page.locator(`#action-dialog input[name=${name}]`).fill(value);
    await page.locator("#action-dialog textarea").fill("as agreed");
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, "#toast", "the node has accepted it");
    expect(changes(node.asked)).toMatchObject([
      { method: "POST", path: `/webhooks/${id}/${word}`, body: { reason: "as agreed", ...sent } },
    ]);
  });

  it("say what the receiver answered to a test", async () => {
    let delivered = false;
    const { page, open } = await visit(browser, {
      scene: ({ path }) =>
        path.endsWith("/test") ? { delivered, reason: delivered ? "HTTP 204" : "HTTP 500" } : undefined,
    });
    await open(WEBHOOK);
    await page.getByRole("button", { name: "Test", exact: true }).click();
    await page.locator("#action-dialog textarea").fill("is it back?");
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, "#action-dialog .result", "The receiver did not take it: HTTP 500.");
    delivered = true;
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, "#toast", "The receiver answered HTTP 204.");
  });

  it("are removed without a reason, and the list is shown", async () => {
    let isGone = false;
    const { page, node, open } = await visit(browser, {
      scene: (asked) => {
        if (asked.method === "DELETE") isGone = true;
        if (isGone && asked.path === "/webhooks") return { items: [] };
        return undefined;
      },
    });
    await open(WEBHOOK);
    await page.getByRole("button", { name: "Remove" }).click();
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, ".empty", "Outcomes are read from the feed");
    expect(changes(node.asked)).toMatchObject([{ method: "DELETE", path: `/webhooks/${FAILING_WEBHOOK}`, body: {} }]);
  });

  it.each([
    [["read"], []],
    [
      ["read", "operate"],
      ["Resume the webhook", "Pause the webhook", "Replay"],
    ],
    [
      ["read", "admin"],
      ["Test", "Resume the webhook", "Pause the webhook", "Replay", "Change", "Rotate the secret", "Remove"],
    ],
    // protects [The dashboard] src/adapters/dashboard/public/parts/webhook-actions.js
  ] as const)("offer a key with %s what it may do", async (scopes, buttons) => {
    const { page, open } = await visit(browser, { scopes: [...scopes] });
    await open(WEBHOOK);
    await shows(page, ".caller small", scopes.join(", "));
    expect(await page.locator("main .buttons button").allTextContents()).toEqual(buttons);
  });

  it("that fail are among the problems, with a link and what helps", async () => {
    const row = {
      ...{ id: `WEBHOOK_FAILING:${FAILING_WEBHOOK}`, code: "WEBHOOK_FAILING" as const, subscriber: "ledger" },
      sentence: "The receiver of ledger does not take outcomes (position 19870; 591 behind the feed).",
      actions: [
        {
          action: "resumeDeliveries",
          label: "x",
          method: "POST" as const,
          path: `/api/v1/webhooks/${FAILING_WEBHOOK}/resume`,
          body: {},
        },
        {
          action: "look",
          label: "Look at the webhook",
          method: "GET" as const,
          path: `/api/v1/webhooks/${FAILING_WEBHOOK}`,
          body: null,
        },
      ],
    };
    const { page, open } = await visit(browser, { scene: troubled(row) });
    await open("#/");
    const trouble = page.locator(".trouble[data-code=WEBHOOK_FAILING]");
    expect(await trouble.locator("button").allTextContents()).toEqual(["Resume the webhook"]);
    await trouble.locator("a", { hasText: "Look at the webhook" }).click();
    await shows(page, "main h1", "ledger");
  });
});

describe.skipIf(browserPath === undefined)("signatures on the dashboard", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  it("are listed by signer, domain, asker and state", async () => {
    const { page, node, open, complaints } = await visit(browser);
    await open("#/signatures");
    const row = page.locator("tbody tr", { hasText: "awaiting approval" });
    const cells = await row.locator("td").allTextContents();
    expect(cells[0]).toBe("Permit USD Coin");
    expect(cells.slice(3, 6)).toEqual(["checkout", "usdc-permit", "750,000,000"]);
    for (const [name, value] of [
      ["signer", "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"],
      ["domain", "USD Coin"],
      ["key", "checkout"],
    ] as const) {
      await page.locator(`input[name=${name}]`).fill(value);
      await page.keyboard.press("Enter");
      await page.waitForURL((url) => url.hash.includes(`${name}=`));
    }
    await page.locator(".tabs a", { hasText: "awaiting approval" }).click();
    await page.locator("tbody tr", { hasText: "example.com" }).waitFor({ state: "detached" });
    const asked = node.asked.findLast(({ path }) => path === "/signatures")?.query;
    expect(Object.fromEntries(asked ?? [])).toMatchObject({
      ...{ domain: "USD Coin", key: "checkout", state: "AWAITING_APPROVAL" },
    });
    expect(complaints).toEqual([]);
  });

  // protects [The dashboard] src/adapters/dashboard/public/parts/signed-message.js
  it("show all of the message before it is approved", async () => {
    const { page, node, open } = await visit(browser);
    await open(SIGNATURE);
    await shows(page, "#about-message", "What was shown");
    await page.getByRole("button", { name: "Approve" }).click();
    const judged = page.locator("#action-dialog .judged");
    for (const word of ["USD Coin", "Permit", SPENDER, "750000000", "1893456000", "checkout", "usdc-permit"])
      expect(await judged.textContent(), word).toContain(word);
    await page.locator("#action-dialog textarea").fill("the invoice was checked");
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, "#toast", "the node has accepted it");
    expect(changes(node.asked)).toMatchObject([
      { path: `/signatures/${WAITING_SIGNATURE}/approve`, body: { reason: "the invoice was checked" } },
    ]);
  });

  it("are approved from the list of problems only once the message is shown", async () => {
    const path = `/api/v1/signatures/${WAITING_SIGNATURE}/approve`;
    const row = {
      ...{ id: `signature:${WAITING_SIGNATURE}`, code: "AWAITING_APPROVAL" as const, signatureId: WAITING_SIGNATURE },
      sentence: "A signature of the typed data Permit for USD Coin, asked for by checkout, waits for approval.",
      actions: [{ action: "allowMessage", label: "Approve it", method: "POST" as const, path, body: {} }],
    };
    const { page, open } = await visit(browser, { scene: troubled(row) });
    await open("#/");
    await page.locator(".trouble button", { hasText: "Approve" }).click();
    await shows(page, "#action-dialog .judged", SPENDER);
    const blind = await visit(browser, {
      scene: (asked) => {
        if (asked.path.startsWith("/signatures/"))
          throw new Refusal(503, "UNAVAILABLE", "the database does not answer");
        return troubled(row)(asked);
      },
    });
    await blind.open("#/");
    await blind.page.locator(".trouble button", { hasText: "Approve" }).click();
    await shows(blind.page, "#action-dialog .notice", "cannot be decided from here");
    expect(await blind.page.locator("#action-dialog button[type=submit]").isDisabled()).toBe(true);
  });

  it("have no button for the key that asked for them, or that may not approve", async () => {
    const asOwner: Scene = (asked) =>
      asked.path === "/me" ? { ...(usual(asked) as object), key: "checkout" } : undefined;
    for (const staging of [{ scene: asOwner }, { scopes: ["read" as const] }]) {
      const { page, open } = await visit(browser, staging);
      await open(SIGNATURE);
      await shows(page, ".withheld", "no button for what needs approve of another key");
      expect(await page.locator("main .buttons button").count()).toBe(0);
    }
  });

  it("show text of callers as text, with invisible characters spelled out", async () => {
    const words = "<img src=x onerror=alert(1)>\u202eevil";
    const { page, open, complaints } = await visit(browser, { words });
    for (const place of ["#/signatures", SIGNATURE]) {
      await open(place);
      await shows(page, "main", "⟨U+202E⟩evil");
    }
    expect(await page.locator("main img").count()).toBe(0);
    expect(complaints).toEqual([]);
  });
});

describe.skipIf(browserPath === undefined)("the pages of webhooks and signatures", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  it("have no violations that axe finds, with and without a dialog", async () => {
    const { page, open } = await visit(browser);
    for (const place of PAGES) {
      await open(place);
      await page.evaluate(AXE);
      expect(await violationsOn(page), place).toEqual([]);
    }
    await open("#/webhooks");
    await page.getByRole("button", { name: "Add a webhook" }).click();
    await page.evaluate(AXE);
    expect(await violationsOn(page), "the form").toEqual([]);
  });

  it("fit a phone, and are reached by keys", async () => {
    const { page, open } = await visit(browser, { context: { viewport: { width: 390, height: 800 } } });
    for (const place of PAGES) {
      await open(place);
      expect(await page.evaluate("document.documentElement.scrollWidth"), place).toBeLessThanOrEqual(390);
    }
    await open("#/");
    for (const [key, title] of [
      ["w", "Webhooks"],
      ["s", "Signatures"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await shows(page, "main h1", title);
      await page.locator("tbody tr").first().waitFor();
      await page.keyboard.press("j");
      expect(await page.evaluate("document.activeElement.className")).toBe("name");
    }
  });
});
