import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { browserPath, launchBrowser } from "../../support/browser.ts";
import { FOREIGN_NOTICE } from "../../support/staged/night.ts";
import { leave, shows, visit } from "./visit.ts";

const SHARED = "0x90F79bf6EB2c4f870365E785982E1f101E93b906";

let browser: Browser;

describe.skipIf(browserPath === undefined)("the dashboard notice that another program uses a signer's key", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  it("is listed first", async () => {
    const { page, node, open, complaints } = await visit(browser);
    await open("#/");
    const trouble = page.locator(".trouble[data-code=EXTERNAL_KEY_USE]");
    expect(await trouble.getAttribute("class")).toContain("critical");
    expect(await page.locator(".trouble").first().getAttribute("data-code")).toBe("EXTERNAL_KEY_USE");
    expect(await trouble.locator("button").allTextContents()).toEqual([
      "Acknowledge",
      "Suspend the lane",
      "Stop this signer",
    ]);
    await trouble.getByRole("button", { name: "Acknowledge" }).click();
    await shows(page, "#action-dialog", "the same again is a new notice");
    await page.locator("#action-dialog textarea").fill("the finance team's own wallet");
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, "#toast", "the node has accepted it");
    const [actionRequest, ...more] = node.asked.filter(({ method }) => method !== "GET");
    expect(more).toEqual([]);
    expect(actionRequest).toMatchObject({
      method: "POST",
      path: `/notices/${FOREIGN_NOTICE}/acknowledge`,
      body: { times: 1, reason: "the finance team's own wallet" },
    });
    expect(actionRequest?.headers["idempotency-key"]).toMatch(/^dashboard-/);
    expect(complaints).toEqual([]);
  });

  it("is also shown on the lane's page", async () => {
    const { page, open } = await visit(browser);
    await open(`#/lanes/8453/${SHARED}`);
    const notice = page.locator(".foreign-use");
    await shows(page, ".foreign-use", "Another program used this key");
    expect(await notice.locator("button").allTextContents()).toEqual([
      "Acknowledge",
      "Suspend the lane",
      "Stop this signer",
    ]);
    await shows(page, "section", "acknowledged by operator:ada");
    await notice.getByRole("button", { name: "Stop this signer" }).click();
    await shows(page, "#action-dialog", "Nothing is sent from this signer");
  });
});
