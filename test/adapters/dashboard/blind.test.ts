import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { browserPath, launchBrowser } from "../../support/browser.ts";
import { type Asked, Refusal } from "../../support/staged/staged-node.ts";
import { leave, shows, visit } from "./visit.ts";

/** A response that never arrives during the test. */
const silence = new Promise(() => undefined);
const FOLLOWED = new Set(["/attention", "/overview"]);
const LATE_MS = 16_000;

let browser: Browser;

const title = (page: Page) => page.locator("main h1").first().textContent();
const icon = (page: Page) =>
  page
    .locator("link[rel=icon]")
    .getAttribute("href")
    .then((href) => decodeURIComponent(href ?? ""));
const markColour = (page: Page) => page.evaluate("getComputedStyle(document.querySelector('.headline .mark')).fill");

/** Fake responses for a dashboard page: the usual test data until `fail` is called, then the result of `answer`. */
function failing(answer: (asked: Asked) => unknown) {
  let isFailing = false;
  return {
    fail: () => {
      isFailing = true;
    },
    recover: () => {
      isFailing = false;
    },
    scene: (asked: Asked) => (isFailing && FOLLOWED.has(asked.path) ? answer(asked) : undefined),
  };
}

const unavailable = () => {
  throw new Refusal(503, "UNAVAILABLE", "the database does not answer");
};

describe.skipIf(browserPath === undefined)("the dashboard of a node that fails or hangs", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  // protects [Everything at once] src/adapters/dashboard/public/sight.js
  it("shows a red headline about the database after 503 responses", async () => {
    const database = failing(unavailable);
    const { page, open } = await visit(browser, { isCalm: true, heldMs: 300, scene: database.scene });
    await open("#/");
    await shows(page, ".status", "live");
    expect(await title(page)).toBe("All is well");
    const green = await markColour(page);
    database.fail();
    await shows(page, ".headline.blind h1", "The database does not answer");
    await shows(page, "#notice", "The database does not answer. What you see is");
    await shows(page, ".status.lost", "no answer for");
    expect(await markColour(page)).not.toBe(green);
    expect(await page.locator(".headline").textContent()).toContain("Nobody knows what needs attention now");
    expect(await page.title()).toBe("(?) Now · Fencepost");
    expect(await icon(page)).toContain(">?<");
    database.recover();
    await shows(page, ".headline.calm h1", "All is well");
    expect(await markColour(page)).toBe(green);
    expect(await page.title()).toBe("Now · Fencepost");
  });

  // protects [Everything at once] src/adapters/dashboard/public/sight.js
  it("marks the data as stale if requests hang", async () => {
    const node = failing(() => silence);
    const { page, open } = await visit(browser, { isCalm: true, scene: node.scene });
    await page.clock.install();
    await open("#/");
    await shows(page, ".status", "live");
    node.fail();
    await page.clock.runFor(2 * LATE_MS);
    await shows(page, ".headline.blind h1", "The node does not answer");
    await shows(page, "#notice", "The node does not answer");
    expect(await page.title()).toBe("(?) Now · Fencepost");
    expect(await page.locator(".status", { hasText: "live" }).count()).toBe(0);
  });

  it("shows that the node does not answer", async () => {
    const { page, node } = await visit(browser, { scene: () => silence });
    await page.clock.install();
    await page.goto(`${node.url}/#/`);
    await shows(page, ".status.lost", "connecting");
    await page.clock.runFor(2 * LATE_MS);
    await shows(page, "main h1", "This cannot be shown");
    await shows(page, "main", "The node does not answer");
    expect(await page.title()).toBe("(?) Now · Fencepost");
  });

  it("shows the number of problems in the browser tab", async () => {
    const { page, open } = await visit(browser);
    await open("#/lanes");
    await shows(page, ".status", "live");
    expect(await page.title()).toMatch(/^\(6\) Lanes/);
    expect(await icon(page)).toContain(">6<");
  });

  it("keeps the last known problems visible", async () => {
    const database = failing(unavailable);
    const { page, open } = await visit(browser, { heldMs: 300, scene: database.scene });
    await open("#/");
    await shows(page, "main h1", "6 things need attention");
    database.fail();
    await shows(page, ".headline.blind h1", "The database does not answer");
    await shows(page, ".headline", "6 things need attention at the last good answer");
    expect(await page.locator(".trouble:not(.past)").count()).toBe(6);
  });
});
