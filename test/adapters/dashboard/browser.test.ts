import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createHttpServer } from "../../../src/adapters/http/server.ts";
import { browserPath, launchBrowser } from "../../support/browser.ts";
import { httpOptions } from "../../support/http-app.ts";
import { night, STUCK_TX } from "../../support/staged/night.ts";
import { type Asked, Refusal } from "../../support/staged/staged-node.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { LANE, leave, PAGES, shows, visit } from "./visit.ts";

if (browserPath === undefined) {
  process.stderr.write(
    "\n!!! NO BROWSER HERE: the dashboard is NOT tested. Install chromium, or set FENCEPOST_TEST_BROWSER. !!!\n",
  );
}

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

let browser: Browser;

const actionRequests = (asked: readonly Asked[]) => asked.filter(({ method }) => method !== "GET");
const title = (page: Page) => page.locator("main h1").first().textContent();

describe.skipIf(browserPath === undefined)("the dashboard in a browser", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  it("shows problems first, worst first, with their actions", async () => {
    const { page, open, complaints } = await visit(browser);
    await open("#/");
    expect(await title(page)).toBe("6 things need attention");
    const first = page.locator(".trouble", { hasText: "Nonce 42" });
    expect(await first.textContent()).toContain("17 wait behind it");
    expect(await first.locator("button").allTextContents()).toEqual(["Raise the fee", "Cancel"]);
    await shows(page, ".top nav .badge", "6");
    await first.locator("a", { hasText: "nonce 42" }).click();
    await shows(page, "main h1", "payout-20460");
    expect(complaints).toEqual([]);
  });

  it("shows that nothing needs attention if there are no problems", async () => {
    const { page, open } = await visit(browser, { isCalm: true });
    await open("#/");
    expect(await title(page)).toBe("All is well");
    expect(await page.locator(".trouble, .badge").count()).toBe(0);
  });

  it("shows past alerts without a warning colour until they are dismissed", async () => {
    const now = new Date();
    const { page, node, open } = await visit(browser, { now: () => now });
    await open("#/");
    const past = page.locator(".trouble.past");
    expect(await past.getAttribute("data-code")).toBe("DEEP_REORG");
    expect(await past.locator(".meta").textContent()).toMatch(/ ago, over/);
    expect(await past.getAttribute("class")).not.toMatch(/error|critical|warning/);
    await page.getByRole("button", { name: "Seen" }).click();
    await past.waitFor({ state: "detached" });
    await page.reload();
    await page.locator(".trouble").first().waitFor();
    expect(await past.count()).toBe(0);
    expect(actionRequests(node.asked), "nobody else loses sight of it").toEqual([]);
  });

  // protects [The dashboard] src/adapters/dashboard/public/pages/now.js
  it("shows problems even if the overview is not available", async () => {
    const { page, open } = await visit(browser, {
      scene: ({ path }) => {
        if (path === "/overview") throw new Refusal(503, "UNAVAILABLE", "the database does not answer");
        return undefined;
      },
    });
    await open("#/");
    expect(await title(page)).toBe("6 things need attention");
    await shows(page, ".notice.bad", "cannot be shown: the database does not answer");
    await shows(page, ".status.lost", "no answer");
    await shows(page, "#notice", "The database does not answer");
  });

  it("loads logs and revert reasons from the chain only when a button is pressed", async () => {
    const { page, node, open } = await visit(browser);
    const asked = () => node.asked.filter(({ query }) => query.get("include") === "logs");
    await open("#/tx?state=FAILED_FINAL");
    await page.locator("tr[data-tx]", { hasText: "reverted" }).first().locator("a.name").click();
    await page.locator("#about-on-chain").waitFor();
    expect(asked()).toEqual([]);
    await page.getByRole("button", { name: "Ask the chain" }).click();
    await shows(page, "section .bad", "transfer amount exceeds balance");
    expect(await page.locator(".logs > li").allTextContents()).toEqual([
      expect.stringMatching(/^Transferfrom 0x[0-9a-f]{40}to 0x[0-9a-f]{40}value 2500000/),
      expect.stringContaining("20,000 bytes"),
    ]);
    await shows(page, "section", "and 3 logs more");
    expect(asked()).toHaveLength(1);
  });

  it("shows how many transactions of a lane are in flight", async () => {
    const { page, open } = await visit(browser);
    await open(LANE);
    const inFlight = page.locator(".facts div", { hasText: "In flight" });
    expect(await inFlight.textContent()).toContain("16 of 16 that may be, 64 by the settings");
    expect(await inFlight.textContent()).toContain("takes no more ahead of what is mined");
    await shows(page, ".facts", "now 4.8 gwei base fee, 1.5 tip");
    await shows(page, ".decisions", "called it stuck");
  });

  it("links every count to the list of the items that it counts", async () => {
    const { page, node, open } = await visit(browser);
    await open("#/");
    await page.locator(".states a", { hasText: "stuck" }).click();
    await page.locator("tr[data-tx]").first().waitFor();
    expect(page.url()).toContain("#/tx?state=STUCK");
    expect(node.asked.some(({ path, query }) => path === "/tx" && query.get("state") === "STUCK")).toBe(true);
    await page.goBack();
    await page.locator(".figure", { hasText: "Oldest pending" }).click();
    await shows(page, "main h1", "payout-20460");
  });

  // protects [The dashboard] src/adapters/dashboard/public/parts/action-dialog.js
  it("asks for a reason before an action", async () => {
    const { page, node, open } = await visit(browser);
    await open("#/");
    await page.locator(".trouble button", { hasText: "Raise the fee" }).click();
    const dialog = page.locator("#action-dialog");
    await shows(page, "#action-dialog .preview", "For at least a tenth more than the 1.2 gwei that stand");
    await dialog.locator("button[type=submit]").click();
    expect(actionRequests(node.asked), "nothing is sent without a reason").toEqual([]);
    await dialog.locator("textarea").fill("the market moved");
    await dialog.locator("input[name=maxFee]").fill("7.5");
    await dialog.locator("summary").click();
    await shows(page, "#action-dialog pre", '"maxFeePerGas": "7500000000"');
    await dialog.locator("button[type=submit]").click();
    await shows(page, "#toast", "the node has accepted it");
    const [actionRequest, ...more] = actionRequests(node.asked);
    expect(more).toEqual([]);
    expect(actionRequest).toMatchObject({
      method: "POST",
      path: `/tx/${STUCK_TX}/reprice`,
      body: { reason: "the market moved", maxFeePerGas: "7500000000" },
    });
    expect(actionRequest?.headers["idempotency-key"]).toMatch(/^dashboard-[0-9a-f]{16}$/);
  });

  // protects [The dashboard] src/adapters/dashboard/public/parts/action-dialog.js
  it("retries a refused action with the same idempotency key", async () => {
    let refusals = 1;
    const { page, node, open } = await visit(browser, {
      scene: ({ method }) => {
        if (method !== "GET" && refusals-- > 0) throw new Refusal(409, "CONFLICT", "it was mined meanwhile");
        return undefined;
      },
    });
    await open(`#/tx/${STUCK_TX}`);
    await page.locator(".explain button", { hasText: "Cancel" }).click();
    await shows(page, "#action-dialog .preview", `0 ether from ${SIGNER} to itself at nonce 42`);
    await page.locator("#action-dialog textarea").fill("wrong recipient");
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, "#action-dialog .result", "it was mined meanwhile");
    expect(await page.locator("#action-dialog textarea").inputValue()).toBe("wrong recipient");
    await page.locator("#action-dialog button[type=submit]").click();
    await shows(page, "#toast", "Cancel");
    const keys = actionRequests(node.asked).map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });

  it("can be used with the keyboard only", async () => {
    const { page, open } = await visit(browser);
    await open("#/");
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.locator("tr[data-tx]").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await shows(page, "main h1", "payout-20460");
    await page.keyboard.press("/");
    await page.keyboard.type("0xf39F");
    await page.locator("#found li[aria-selected=true]").waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator(".ruler").waitFor();
    expect(page.url()).toContain(LANE);
    await page.keyboard.press("?");
    await page.locator("#help-dialog[open]").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("n");
    await page.locator(".headline").waitFor();
  });

  it("keeps user input while the page updates", async () => {
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
    await open("#/tx");
    await page.locator("input[name=text]").pressSequentially("payout-");
    const before = node.asked.filter(({ path }) => path === "/tx").length;
    await shows(page, ".tabs a", `created${revision + 2}`);
    expect(node.asked.filter(({ path }) => path === "/tx").length, "the list is read again").toBeGreaterThan(before);
    expect(await page.locator("input[name=text]").inputValue()).toBe("payout-");
    await page.keyboard.type("20460");
    await page.keyboard.press("Enter");
    await page.waitForURL(/text=payout-20460/);
  });

  it("draws the nonces of a lane", async () => {
    const { page, node, open } = await visit(browser);
    await open(LANE);
    expect(await page.locator(".strip .nonce.hole").getAttribute("aria-label")).toBe("nonce 50: hole, given back");
    expect(await page.locator(".legend").textContent()).toContain("7 in flight");
    await page.locator(".strip").focus();
    await page.keyboard.press("-");
    await page.locator('.strip[aria-label^="Nonces 0 to 119."]').waitFor();
    expect(page.url()).toContain("zoom=120");
    await page.keyboard.press("ArrowRight");
    await page.waitForURL(/at=1\d\d/);
    await page.locator(".ruler-tools a", { hasText: "Head of line" }).click();
    await page.locator(".strip .nonce.stuck").click();
    await shows(page, "main h1", "payout-20460");
    const asked = node.asked.filter(({ path }) => path.endsWith("/nonces"));
    for (const { query } of asked) expect(Number(query.get("to")) - Number(query.get("from"))).toBeLessThan(2_000);
  });

  it("shows the stages, attempts, call and history of a transaction", async () => {
    const { page, open, complaints } = await visit(browser);
    await open(`#/tx/${STUCK_TX}`);
    expect(await page.locator(".road .next").textContent()).toContain("receipt");
    await shows(page, ".fee-bar.short", "below the market");
    await shows(page, ".facts", "transfer");
    await shows(page, ".args", "2500000");
    await shows(page, ".timeline .by", "node-c, token 8");
    const link = page.locator("a.out").first();
    expect(await link.getAttribute("href")).toMatch(/^https:\/\/explorer\.example\.net\/tx\/0x/);
    expect(await link.getAttribute("rel")).toBe("noreferrer");
    expect(complaints).toEqual([]);
  });

  // protects [The dashboard] src/application/queries/explain.ts, src/adapters/dashboard/public/parts/explanation.js
  it("does not load a transaction's explanation at every poll", async () => {
    const { node, open } = await visit(browser, { now: () => new Date(0) });
    await open(`#/tx/${STUCK_TX}`);
    const read = (path: string) => node.asked.filter((asked) => asked.path === path).length;
    await waitUntil(async () => read(`/tx/${STUCK_TX}`) >= 3, "it is looked at again");
    expect(read(`/tx/${STUCK_TX}/explain`)).toBe(1);
  });

  it("does not show a cancelled transaction as a failure", async () => {
    const { page, open } = await visit(browser);
    await open("#/tx?state=FAILED_FINAL");
    expect(await page.locator(".state", { hasText: "cancelled" }).first().getAttribute("class")).toBe("state closed");
    expect(await page.locator(".state", { hasText: "reverted" }).first().getAttribute("class")).toBe("state failed");
  });

  // protects [Attacks] src/adapters/dashboard/public/dom.js, src/adapters/dashboard/public/formats.js
  it("shows text from outside without markup or hidden characters", async () => {
    const markup = `<img src=x onerror="document.title='owned'">`;
    const words = `${markup}\u202Egnp.exe\u0000${"x".repeat(10_000)}`;
    const { page, open, complaints } = await visit(browser, {
      words,
      context: { viewport: { width: 390, height: 844 } },
    });
    for (const place of PAGES) {
      await open(place);
      expect(await page.locator("main img").count(), place).toBe(0);
      expect(await page.evaluate("document.documentElement.scrollWidth"), place).toBeLessThanOrEqual(390);
    }
    await open("#/tx/019a4b7e-8a90-7cc1-b1d2-00000000002d");
    await page.getByRole("button", { name: "Ask the chain" }).click();
    await page.locator(".logs > li").first().waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
    await open(`#/tx/${STUCK_TX}`);
    const text = (await page.locator("main").textContent()) ?? "";
    expect(text).toContain("⟨U+202E⟩");
    expect(text).toContain("⟨U+0000⟩");
    expect(/\p{Cc}|\p{Cf}/u.test(text.replaceAll("\n", ""))).toBe(false);
    expect(await page.title()).toMatch(/^\(6\) <img src=x .* · Fencepost$/);
    expect(complaints).toEqual([]);
  });

  // protects [Attacks] src/adapters/dashboard/public/dom.js
  it("renders no link if a chain's explorer setting is a script URL", async () => {
    const { page, open } = await visit(browser, {
      scene: ({ path, query }) =>
        path !== "/overview" || query.has("wait")
          ? undefined
          : {
              revision: "x",
              asOf: new Date().toISOString(),
              lanes: 1,
              states: {},
              createdPerMinute: 0,
              completedPerMinute: 0,
              timeToFinalitySeconds: null,
              oldestPending: null,
              chains: [
                {
                  chainId: 8453,
                  reachable: true,
                  head: 1,
                  baseFee: null,
                  endpoints: [],
                  explorer: "javascript:alert(1)",
                },
              ],
            },
    });
    await open(`#/tx/${STUCK_TX}`);
    await page.locator("a.out").first().waitFor();
    expect(await page.locator("a.out[href]").count()).toBe(0);
  });

  // protects [The dashboard] src/adapters/dashboard/public/api.js
  it("asks for an API key if the node requires an API key", async () => {
    const { page, node } = await visit(browser, {
      scene: ({ headers }) => {
        if (headers.authorization !== "Bearer correct-horse") throw new Refusal(401, "UNAUTHENTICATED", "no key");
        return undefined;
      },
    });
    await page.goto(`${node.url}/#/tx`);
    await page.locator("#key-dialog[open]").waitFor();
    await page.keyboard.press("Escape");
    await page.fill("#key-input", "wrong");
    await page.keyboard.press("Enter");
    await shows(page, "#key-error", "This key is not known");
    await page.fill("#key-input", "correct-horse");
    await page.keyboard.press("Enter");
    await page.locator("tr[data-tx]").first().waitFor();
    await page.reload();
    await page.locator("tr[data-tx]").first().waitFor();
    expect(await page.locator("#key-dialog[open]").count()).toBe(0);
    expect(await page.evaluate("JSON.stringify(localStorage) + document.cookie")).not.toContain("correct-horse");
    await page.locator("button[aria-label='Forget the API key']").click();
    await page.locator("#key-dialog[open]").waitFor();
  });

  // protects [The dashboard] src/adapters/dashboard/public/api.js, src/adapters/dashboard/public/app.js
  it("shows nothing in green when the node stops answering", async () => {
    const { page, node, open } = await visit(browser, { isCalm: true });
    await open("#/");
    const green = await page.evaluate("getComputedStyle(document.querySelector('.headline .mark')).fill");
    await node.close();
    await shows(page, "#notice", "The node does not answer. What you see is");
    await shows(page, ".headline.blind h1", "The node does not answer");
    expect(await page.evaluate("getComputedStyle(document.querySelector('.headline .mark')).fill")).not.toBe(green);
  });

  // protects [The dashboard] src/main/dev/dev.ts, src/adapters/dashboard/files.ts
  it("offers test transfers only on a dev chain", async () => {
    const dev = await visit(browser, { isDev: true });
    await dev.open("#/tx");
    await dev.page.locator("#send summary").click();
    await dev.page.fill("#send-form input[name=count]", "3");
    await dev.page.fill("#send-form input[name=amount]", "0.25");
    await dev.page.locator("#send-form button").click();
    await dev.page.locator("#send-result", { hasText: /\S/ }).waitFor();
    const [actionRequest] = actionRequests(dev.node.asked);
    expect(actionRequest).toMatchObject({
      path: "/tx/batch",
      body: { transactions: [{ payload: { value: "250000000000000000" } }, {}, {}] },
    });
    const other = await visit(browser);
    await other.open("#/tx");
    expect(await other.page.locator("#send").count()).toBe(0);
  });

  it("finds the end of a long completion feed without reading all of it", async () => {
    const last = 1_000_000;
    const item = (seq: number) => ({
      seq,
      epoch: 1,
      txId: STUCK_TX,
      chainId: 8453,
      signer: SIGNER,
      requestId: `order-${seq}`,
      nonce: seq,
      state: "CONFIRMED",
      subState: null,
      settled: true,
      txHash: null,
      at: new Date().toISOString(),
    });
    const { page, node, open } = await visit(browser, {
      scene: ({ path, query }) => {
        if (path !== "/tx/completions") return undefined;
        const after = Number(query.get("after"));
        if (query.has("wait") && after >= last) return new Promise(() => undefined);
        const items = Array.from(
          { length: Math.max(0, Math.min(Number(query.get("limit") ?? 1_000), last - after)) },
          (_, index) => item(after + index + 1),
        );
        return { epoch: 1, items, next: items.at(-1)?.seq ?? after };
      },
    });
    await open("#/feed");
    await shows(page, "#feed-state", "live, at 1,000,000");
    await shows(page, "tr.completion", "order-1000000");
    expect(node.asked.filter(({ path }) => path === "/tx/completions").length).toBeLessThan(50);
  });

  it("shows the API reference at /docs without console errors", async () => {
    const { page, complaints } = await visit(browser);
    const server = createHttpServer(httpOptions());
    const { url } = await server.listen("127.0.0.1", 0);
    await page.goto(`${url}/docs`);
    await page.click("nav a[href='#createTransaction']");
    await shows(page, "#createTransaction h3", "Send a transaction");
    expect(await page.evaluate("getComputedStyle(document.querySelector('nav')).position")).toBe("sticky");
    expect(complaints).toEqual([]);
    await page.context().close();
    await server.close();
  });
});
