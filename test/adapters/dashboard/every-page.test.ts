import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { browserPath, launchBrowser } from "../../support/browser.ts";
import { AXE, violationsOn } from "./accessibility.ts";
import { leave, PAGES, visit } from "./visit.ts";

let browser: Browser;

describe.skipIf(browserPath === undefined)("every page of the dashboard", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  it("passes the accessibility checks of axe, in both colour schemes", async () => {
    const { page, open } = await visit(browser, { isDev: true, context: { colorScheme: "light" } });
    const found: string[] = [];
    await open("#/");
    await page.evaluate(AXE);
    for (const place of PAGES) {
      await open(place);
      found.push(...(await violationsOn(page)).map((each) => `${place} ${each}`));
    }
    expect(found).toEqual([]);
  }, 180_000);
});
