import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { browserPath, launchBrowser } from "../../support/browser.ts";
import { type Asked, Refusal } from "../../support/staged/staged-node.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { AXE, violationsOn } from "./accessibility.ts";
import { leave, shows, visit } from "./visit.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const LANE = `#/lanes/8453/${SIGNER}`;

const reads = (asked: readonly Asked[], path: string) => asked.filter((each) => each.path === path);

let browser: Browser;

describe.skipIf(browserPath === undefined)("the strip of the dashboard", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  it("shows four plots over all lanes, with troubles as marks and the spend by signer and key", async () => {
    const { page, node, open, complaints } = await visit(browser);
    await open("#/");
    const titles = await page.locator(".panel figcaption b").allTextContents();
    expect(titles).toEqual(["Created and final", "Time to finality", "Base fee and offers", "Fees paid"]);
    expect(await page.locator(".panel .mark-of-trouble title").first().textContent()).toContain("stuck 2");
    expect(await page.locator(".plot .base").getAttribute("d")).toMatch(/^M.*L/);
    await shows(page, ".spend", "payouts-1 chain 8453");
    await shows(page, ".spend", "checkout");
    // Base fees of two chains cannot be drawn together: one read for all lanes, and one for the chain that is shown.
    // They leave together, so they arrive in either order.
    const chains = () => reads(node.asked, "/history").map(({ query }) => query.get("chainId"));
    expect(chains().sort()).toEqual(["8453", null]);
    await page.locator(".hint a", { hasText: "chain 10" }).click();
    await shows(page, ".hint b", "chain 10");
    expect(chains()).toContain("10");
    expect(complaints).toEqual([]);
  });

  it("covers 1 h, 24 h or 7 d of a lane", async () => {
    const { page, node, open } = await visit(browser);
    await open(LANE);
    const ranges = [
      ["1 h", 3_600, "60"],
      ["24 h", 86_400, "600"],
      ["7 d", 604_800, "3600"],
    ] as const;
    for (const [label, seconds, step] of ranges) {
      await page.locator("nav[aria-label='Range of the history'] a", { hasText: label }).click();
      await page.locator("nav[aria-label='Range of the history'] a[aria-current]", { hasText: label }).waitFor();
      // The usual range is read when the page opens, and kept while it is recent.
      const { query } = await waitUntil(
        async () => reads(node.asked, "/history").findLast((each) => each.query.get("step") === step),
        `steps of ${label}`,
      );
      await page.locator(".plot").first().waitFor();
      expect([query.get("signer"), query.get("chainId")]).toEqual([SIGNER, "8453"]);
      const span = Date.parse(String(query.get("to"))) - Date.parse(String(query.get("from")));
      expect(Math.abs(span - seconds * 1_000), label).toBeLessThan(1_000);
    }
  });

  // protects [The dashboard] src/adapters/dashboard/public/parts/panels.js
  it("lists the transactions of the stretch that is dragged over", async () => {
    const { page, node, open } = await visit(browser);
    await open(LANE);
    const plot = page.locator(".plot").first();
    await plot.scrollIntoViewIfNeeded();
    const box = (await plot.boundingBox()) as { x: number; y: number; width: number; height: number };
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
    await page.mouse.up();
    await shows(page, ".stretch", "1,204 transactions, 14 failed, 3.2 ether moved, 0.1103 ether fees");
    const { query } = reads(node.asked, "/tx").at(-1) as Asked;
    const [after, before] = [query.get("createdAfter"), query.get("createdBefore")].map((text) =>
      Date.parse(String(text)),
    );
    expect(query.get("signer")).toBe(SIGNER);
    const hours = (Number(before) - Number(after)) / 3_600_000;
    expect(hours).toBeGreaterThan(5.5);
    expect(hours).toBeLessThan(6.7);
    expect(Number(after) % 600_000, "a stretch of whole buckets").toBe(0);
    await page.locator(".stretch a", { hasText: "all times" }).click();
    await page.waitForURL((url) => !url.hash.includes("from="));
    expect(reads(node.asked, "/tx").at(-1)?.query.has("createdAfter")).toBe(false);
  });

  it("is a table as well, accessible in both colour schemes", async () => {
    const { page, open } = await visit(browser, { context: { colorScheme: "light" } });
    await open("#/?range=1h");
    await page.locator("summary", { hasText: "As a table" }).click();
    const rows = page.locator("[aria-label=History] tbody tr");
    await rows.first().waitFor();
    expect(await rows.count()).toBeGreaterThan(50);
    await page.evaluate(AXE);
    expect(await violationsOn(page)).toEqual([]);
    await rows.first().locator("a").click();
    await page.waitForURL(/from=.*&to=/);
  });

  // protects [The dashboard] src/adapters/dashboard/public/parts/history.js
  it("does not hide the problems if it cannot be loaded, and does not look new", async () => {
    const { page, open } = await visit(browser, {
      scene: ({ path }) => {
        if (path === "/history") throw new Refusal(503, "UNAVAILABLE", "the database does not answer");
        return undefined;
      },
    });
    await open("#/");
    await shows(page, "main h1", "6 things need attention");
    await shows(page, ".card .notice.bad", "It cannot be shown: the database does not answer");
    expect(await page.locator(".plot").count()).toBe(0);
  });

  it("is not loaded at every poll", async () => {
    const { page, node, open } = await visit(browser);
    await open(LANE);
    await page.locator(".plot").first().waitFor();
    const polls = () => reads(node.asked, `/signers/${SIGNER}`).length;
    const before = polls();
    await page.waitForResponse((response) => response.url().includes(`/signers/${SIGNER}`) && polls() > before + 1);
    expect(reads(node.asked, "/history")).toHaveLength(1);
  });
});
