/** Takes the pictures of docs/dashboard.md, of a scene with troubles of every kind. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchBrowser } from "../../support/browser.ts";
import { smallPng } from "../../support/small-png.ts";
import { night, STUCK_TX } from "../../support/staged/night.ts";
import { type StagedNode, startStagedNode } from "../../support/staged/staged-node.ts";

const LANE = "#/lanes/8453/0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const DESKTOP = { viewport: { width: 1180, height: 760 } };
const PHONE = { viewport: { width: 390, height: 760 } };
const MOST_BYTES = 60_000;

const PICTURES: readonly (readonly [string, string, BrowserContextOptions])[] = [
  ["now-light", "#/", { ...DESKTOP, colorScheme: "light" }],
  ["now-dark", "#/", { ...DESKTOP, colorScheme: "dark" }],
  ["now-phone", "#/", { ...PHONE, colorScheme: "dark" }],
  ["lane-light", LANE, { ...DESKTOP, colorScheme: "light" }],
  ["lane-phone", LANE, { ...PHONE, colorScheme: "light" }],
  ["transaction-dark", `#/tx/${STUCK_TX}`, { ...DESKTOP, colorScheme: "dark" }],
  ["transactions-light", "#/tx", { ...DESKTOP, colorScheme: "light" }],
  ["cluster-dark", "#/cluster", { ...DESKTOP, colorScheme: "dark" }],
];

describe("the dashboard pictures for the documentation", () => {
  let browser: Browser;
  let node: StagedNode;
  // A fixed time for all pictures, so that a picture changes only if the page does.
  const now = new Date("2026-11-17T03:04:05Z");

  beforeAll(async () => {
    browser = await launchBrowser();
    node = await startStagedNode(night({ now: () => now }));
  });

  afterAll(async () => {
    await browser?.close();
    await node?.close();
  });

  it.each(PICTURES)("include a picture of %s, small enough for a page", async (name, place, options) => {
    const context = await browser.newContext({
      ...options,
      locale: "en-GB",
      timezoneId: "UTC",
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    await page.clock.setFixedTime(now);
    await page.goto(`${node.url}/${place}`);
    await page.locator("main[aria-busy=false]").waitFor();
    await page.locator(".status", { hasText: "live" }).waitFor();
    const path = fileURLToPath(new URL(`../../../docs/pictures/${name}.png`, import.meta.url));
    const picture = smallPng(await page.screenshot({ animations: "disabled" }));
    expect(picture.length).toBeLessThan(MOST_BYTES);
    writeFileSync(path, picture);
    await context.close();
  });
});
