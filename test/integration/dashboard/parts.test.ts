/** Parts of the page that only need a check now and then: `npm run test:dashboard`. */
import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Transaction } from "../../../src/contract/schemas/transaction-schema.ts";
import { leave, shows, visit } from "../../adapters/dashboard/visit.ts";
import { launchBrowser } from "../../support/browser.ts";
import { night, STUCK_TX, signerOf } from "../../support/staged/night.ts";
import { Refusal } from "../../support/staged/staged-node.ts";
import { waitUntil } from "../../support/wait-until.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const LANE = `#/lanes/8453/${SIGNER}`;
const PAGES = ["#/", "#/tx", `#/tx/${STUCK_TX}`, "#/lanes", LANE, "#/feed", "#/cluster", "#/policies"];
const GET = { method: "GET", query: new URLSearchParams(), body: null, headers: {} };
const sample = night({ now: () => new Date() })({ ...GET, path: `/tx/${STUCK_TX}` }) as Transaction;

const worth = (value: string) => ({ ...sample, payload: { ...sample.payload, value } });
let browser: Browser;

describe("the dashboard, part by part,", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  it("names the key, its scopes and the node in the header", async () => {
    const { page, open } = await visit(browser, { scopes: ["read", "operate"] });
    await open("#/");
    await shows(page, ".caller", "on-call");
    await shows(page, ".caller small", "read, operate · node-a");
    expect(await page.locator(".caller").getAttribute("title")).toContain("version 0.1.0");
  });

  it("offers the names of signers in the filter, and for test transfers", async () => {
    const { page, open } = await visit(browser, { isDev: true });
    await open("#/tx");
    const named = page.locator("#signer-names option[label='payouts-1']");
    await named.waitFor({ state: "attached" });
    await page.locator("input[name=signer]").fill((await named.getAttribute("value")) ?? "");
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.hash.includes(`signer=${SIGNER.toLowerCase()}`));
    await page.locator("#send option", { hasText: "payouts-1" }).waitFor({ state: "attached" });
  });

  it("copies the exact figure if a shortened amount is selected and copied", async () => {
    const exact = "0.002100000000000001";
    const { page, open } = await visit(browser, {
      context: { permissions: ["clipboard-read", "clipboard-write"] },
      scene: ({ path }) => (path === "/tx" ? { items: [worth("2100000000000001")], next: null } : undefined),
    });
    await open("#/tx");
    await page.evaluate(
      `getSelection().selectAllChildren([...document.querySelectorAll("data.amount")].find(({ value }) => value === "${exact}"))`,
    );
    await page.keyboard.press("Control+c");
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(exact);
  });

  it("shows times in local time or UTC, and names the zone", async () => {
    const { page, open } = await visit(browser, { context: { timezoneId: "Asia/Kolkata", locale: "en-GB" } });
    await open(`#/tx/${STUCK_TX}`);
    const created = page.locator(".facts div", { hasText: "Created" });
    expect(await created.textContent()).toContain("GMT+5:30");
    await page.getByRole("button", { name: "Times in UTC or local time" }).click();
    await created.filter({ hasText: " UTC" }).waitFor();
    await page.reload();
    await created.filter({ hasText: " UTC" }).waitFor();
  });

  it("lists the transactions that were created in a range of local time, typed by hand", async () => {
    const { page, node, open } = await visit(browser, { context: { timezoneId: "Asia/Kolkata", locale: "en-GB" } });
    const asked = () => node.asked.findLast(({ path }) => path === "/tx")?.query;
    await open("#/tx");
    await page.locator("input[name=from]").fill("2026-11-07T10:00");
    await page.waitForURL(/from=2026-11-07T04%3A30/);
    // While a date is typed, the field has none, and then those of the years 2, 20, and 202.
    await page.locator("input[name=from]").focus();
    for (const digit of "11012026") await page.keyboard.press(digit);
    await waitUntil(async () => asked()?.get("createdAfter") === "2026-11-01T04:30:00.000Z", "the typed time");
    const after = node.asked.filter(({ path }) => path === "/tx").map(({ query }) => query.get("createdAfter"));
    expect(new Set(after)).toEqual(new Set([null, "2026-11-07T04:30:00.000Z", "2026-11-01T04:30:00.000Z"]));
    await page.locator("input[name=to]").fill("2026-11-30T23:59");
    await shows(page, ".stretch", "1 Nov");
    await page.waitForURL(/to=2026-11-30T18%3A29/);
    await waitUntil(async () => asked()?.get("createdBefore") === "2026-11-30T18:29:00.000Z", "the range");
    expect(asked()?.get("createdAfter")).toBe("2026-11-01T04:30:00.000Z");
    await page.getByRole("button", { name: "Times in UTC or local time" }).click();
    expect(await page.locator("input[name=from]").inputValue()).toBe("2026-11-01T04:30");
    await page.locator("input[name=from]").fill("");
    await page.locator("input[name=to]").fill("2026-11-20T00:00");
    await page.waitForURL(/tx\?to=2026-11-20T00%3A00/);
  });

  const STRETCH = "#/tx?from=2026-11-17T00:00:00.000Z&to=2026-11-17T01:00:00.000Z";

  // protects [The dashboard] src/adapters/dashboard/public/parts/stretch.js
  it("lists the transactions of a stretch before a node has added them up", async () => {
    let finish: (() => void) | undefined;
    const usual = night({ now: () => new Date() });
    const { page, open } = await visit(browser, {
      scene: (asked) =>
        asked.path === "/costs"
          ? new Promise((resolve) => {
              finish = () => resolve(usual(asked));
            })
          : undefined,
    });
    await open(STRETCH);
    await page.locator("tr[data-tx]").first().waitFor();
    await shows(page, ".stretch", "adding up");
    await waitUntil(async () => finish !== undefined, "the question");
    finish?.();
    await shows(page, ".stretch", "1,204 transactions, 14 failed");
  });

  // protects [The dashboard] src/adapters/dashboard/public/parts/stretch.js
  it("does not let a node add up a stretch again at every change of its list", async () => {
    let revision = 0;
    const usual = night({ now: () => new Date() });
    const { page, node, open } = await visit(browser, {
      scene: (asked) => {
        if (asked.path !== "/overview") return undefined;
        revision += 1;
        const overview = usual({ ...asked, query: new URLSearchParams() }) as { readonly states: object };
        return { ...overview, revision: String(revision), states: { ...overview.states, CREATED: revision } };
      },
    });
    await open(STRETCH);
    const reads = (path: string) => node.asked.filter((each) => each.path === path).length;
    await waitUntil(async () => reads("/tx") >= 3, "the list is read again");
    expect(reads("/costs")).toBe(1);
    await page.locator("input[name=signer]").fill(SIGNER);
    await page.keyboard.press("Enter");
    await waitUntil(async () => reads("/costs") === 2, "another filter has other totals");
  });

  it("says that the totals of a stretch are not known", async () => {
    const { page, open } = await visit(browser, {
      scene: ({ path }) => {
        if (path === "/costs") throw new Refusal(503, "UNAVAILABLE", "the database does not answer");
        return undefined;
      },
    });
    await open(STRETCH);
    await shows(page, ".stretch .bad", "Totals are not known: the database does not answer");
  });

  it("shows the five highest spenders, and the next ones on request", async () => {
    const usual = night({ now: () => new Date() });
    const spenders = Array.from({ length: 20 }, (_, n) => ({
      ...{ signer: signerOf(n), name: null, chainId: 8453, completed: 20 - n, fees: "1000000000000000" },
    }));
    const { page, open } = await visit(browser, {
      scene: (asked) => (asked.path === "/history" ? { ...(usual(asked) as object), signers: spenders } : undefined),
    });
    await open("#/");
    await page.locator("div.spend").waitFor();
    expect(await page.locator("[aria-label='Spend by signer'] tbody tr").count()).toBe(5);
    await page.locator("div.spend summary", { hasText: "The next 15" }).click();
    await page.locator(`[aria-label='Spend by signer, continued'] a[title="${signerOf(19)}"]`).waitFor();
  });

  it("pages forward to the top of the list, and back", async () => {
    const { page, open } = await visit(browser, { lanes: 300, context: { viewport: { width: 1280, height: 600 } } });
    await open("#/lanes");
    await page.locator(".paging a", { hasText: "Next page" }).click();
    await page.waitForURL(/after=100/);
    expect(await page.evaluate("scrollY")).toBe(0);
    await page.locator(`tbody tr:first-child a[title="${signerOf(100)}"]`).waitFor();
    await page.locator(".paging a", { hasText: "Next page" }).click();
    await page.locator(`tbody tr:first-child a[title="${signerOf(200)}"]`).waitFor();
    await page.locator(".paging a", { hasText: "Previous page" }).click();
    await page.locator(`tbody tr:first-child a[title="${signerOf(100)}"]`).waitFor();
    await page.locator(".paging a", { hasText: "Previous page" }).click();
    await page.locator(".paging a", { hasText: "Previous page" }).waitFor({ state: "detached" });
    expect(page.url()).not.toContain("after");
    expect(await page.locator(".paging a").allTextContents()).toEqual(["Next page"]);
  });

  it("downloads the list as CSV, with texts that are no formula", async () => {
    const evil = { ...sample, requestId: '=HYPERLINK("http://evil")' };
    const { page, node, open, complaints } = await visit(browser, {
      scene: ({ path, query }) =>
        path === "/tx" ? { items: [evil], next: query.has("after") ? null : "second" } : undefined,
    });
    await open("#/tx?state=STUCK");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "CSV" }).click(),
    ]);
    const lines = readFileSync(await download.path(), "utf8")
      .trimEnd()
      .split("\r\n");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^"createdAt","txId","requestId"/);
    expect(lines[1]).toContain(`"'=HYPERLINK(""http://evil"")"`);
    const reads = node.asked.filter(({ path, query }) => path === "/tx" && query.get("limit") === "1000");
    expect(reads.map(({ query }) => [query.get("state"), query.get("after")])).toEqual([
      ["STUCK", null],
      ["STUCK", "second"],
    ]);
    expect(complaints).toEqual([]);
  });

  it("opens the first result if a text is pasted and Enter is pressed at once", async () => {
    const { page, open } = await visit(browser);
    await open("#/lanes");
    await page.locator("#search").fill(STUCK_TX);
    await page.locator("#search").press("Enter");
    await shows(page, "main h1", "payout-20460");
    expect(page.url()).toContain(`#/tx/${STUCK_TX}`);
  });

  it("shows every tab on a phone", async () => {
    const { page, open } = await visit(browser, { context: { viewport: { width: 390, height: 800 } } });
    await open("#/");
    for (const tab of await page.locator(".top nav a").all()) {
      const box = await tab.boundingBox();
      expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 999) <= 390, await tab.innerText()).toBe(true);
    }
  });

  it("shows the takeovers of one event in one row", async () => {
    const { page, open } = await visit(browser);
    await open("#/cluster");
    const rows = page.locator("[aria-label=Takeovers] tbody tr");
    expect(await rows.count()).toBe(1);
    expect(await rows.first().textContent()).toContain("node-d → node-a 2, node-b 1, node-c 1");
    await rows.first().locator("summary", { hasText: "4 lanes" }).click();
    expect(await rows.first().locator("li a").count()).toBe(4);
  });

  it("stays fast with ten thousand lanes and a long table", async () => {
    const { page, node, open } = await visit(browser, { lanes: 10_000 });
    const session = await page.context().newCDPSession(page);
    // Measure the CPU time of the page's thread, which does not depend on the load of the machine. Painting is not
    // counted, because it is the browser's work.
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const spent = async () => {
      const { metrics } = await session.send("Performance.getMetrics");
      const ours = metrics.filter(({ name }) => /^(Script|Layout|RecalcStyle)Duration$/.test(name));
      return ours.reduce((sum, { value }) => sum + value, 0);
    };
    await open("#/");
    const before = await spent();
    await open("#/lanes");
    expect(await page.locator("tbody tr").count()).toBe(100);
    await page.locator(".paging a", { hasText: "Next page" }).click();
    await page.waitForURL(/after=100/);
    await page.locator(`tbody tr:first-child a[title="${signerOf(100)}"]`).waitFor();
    expect((await spent()) - before).toBeLessThan(0.2);
    expect(node.asked.filter(({ path, query }) => path.startsWith("/signers") && query.has("fresh"))).toEqual([]);
  });

  it("fits windows 390 and 1280 pixels wide", async () => {
    const { page, open } = await visit(browser, { isDev: true });
    for (const place of PAGES) {
      await open(place);
      for (const width of [390, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        expect(await page.evaluate("document.documentElement.scrollWidth"), place).toBeLessThanOrEqual(width);
      }
    }
  });

  it("follows the system's colour scheme until the user chooses one", async () => {
    const { page, open } = await visit(browser, { context: { colorScheme: "dark" } });
    await open("#/");
    const ground = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const dark = await ground();
    await page.emulateMedia({ colorScheme: "light" });
    const light = await ground();
    expect(light).not.toBe(dark);
    await page.locator("button[aria-label='Dark or light']").click();
    expect(await ground()).toBe(dark);
    await page.reload();
    await page.locator("main[aria-busy=false]").waitFor();
    expect(await ground()).toBe(dark);
  });
});
