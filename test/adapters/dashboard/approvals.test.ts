import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { browserPath, launchBrowser } from "../../support/browser.ts";
import { AWAITING_TX } from "../../support/staged/night.ts";
import { Refusal } from "../../support/staged/staged-node.ts";
import { leave, shows, visit } from "./visit.ts";

const RECEIVER = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
/** Texts that an approver must see: receiver, amount, call, rule and worst cost. */
const WHOLE = [RECEIVER, "2 ether", "transfer", "2500000", "signers.*.maxValue.perTransaction", "2.5 ether"];

let browser: Browser;

async function showsAll(page: Page, selector: string, words: readonly string[]): Promise<void> {
  await page.locator(selector).first().waitFor();
  const text = (await page.locator(selector).first().innerHTML()) ?? "";
  for (const word of words) expect(text, word).toContain(word);
}

describe.skipIf(browserPath === undefined)("the approval of a transaction on the dashboard", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  it("shows receiver, amount and cost in the list of problems", async () => {
    const { page, node, open, complaints } = await visit(browser);
    await open("#/");
    await showsAll(page, ".trouble[data-code=AWAITING_APPROVAL] .judged", WHOLE);
    await page.locator(".trouble[data-code=AWAITING_APPROVAL] button", { hasText: "Approve" }).click();
    await showsAll(page, "#action-dialog .judged", WHOLE);
    await page.locator("#action-dialog textarea").fill("checked with the treasury");
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, "#toast", "the node has accepted it");
    expect(node.asked.filter(({ method }) => method !== "GET")).toMatchObject([{ path: `/tx/${AWAITING_TX}/approve` }]);
    expect(complaints).toEqual([]);
  });

  it("shows receiver, amount and cost on the transaction page", async () => {
    const { page, open } = await visit(browser);
    await open("#/tx?state=CREATED");
    await showsAll(page, `tr[data-tx="${AWAITING_TX}"] .approval`, WHOLE);
    await open(`#/tx/${AWAITING_TX}`);
    await page.locator(".others summary").click();
    await page.locator(".others button", { hasText: "Approve" }).click();
    await showsAll(page, "#action-dialog .judged", WHOLE);
  });

  it("is not possible if the transaction cannot be loaded", async () => {
    const { page, open } = await visit(browser, {
      scene: ({ path }) => {
        if (path === `/tx/${AWAITING_TX}`) throw new Refusal(503, "UNAVAILABLE", "the database does not answer");
        return undefined;
      },
    });
    await open("#/");
    await page.locator(".trouble[data-code=AWAITING_APPROVAL] button", { hasText: "Approve" }).click();
    await shows(page, "#action-dialog .notice", "cannot be decided from here");
    expect(await page.locator("#action-dialog button[type=submit]").isDisabled()).toBe(true);
  });
});
