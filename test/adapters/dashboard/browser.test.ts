import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { dashboardFiles } from "../../../src/adapters/dashboard/files.ts";
import type { HttpServerOptions } from "../../../src/adapters/http/options.ts";
import { createHttpServer, type HttpServer } from "../../../src/adapters/http/server.ts";
import { browserPath, launchBrowser } from "../../support/browser.ts";
import { httpOptions } from "../../support/http-app.ts";
import { createMovingWorld, type MovingWorld } from "../../support/moving-world.ts";
import { RECIPIENT_EIP55 } from "../../support/scripted-api.ts";

if (browserPath === undefined) {
  process.stderr.write(
    "\n!!! NO BROWSER HERE: the dashboard is NOT tested. Install chromium, or set FENCEPOST_TEST_BROWSER. !!!\n",
  );
}

let browser: Browser;
const servers: HttpServer[] = [];

interface Visit {
  readonly page: Page;
  readonly world: MovingWorld;
  readonly server: HttpServer;
  readonly url: string;
  /** What the browser complained about: script errors, refused resources, broken policy. */
  readonly complaints: string[];
}

async function visit(options: Partial<HttpServerOptions> = {}, context: BrowserContextOptions = {}): Promise<Visit> {
  const world = createMovingWorld();
  const server = createHttpServer(httpOptions({}, { api: world.api, files: dashboardFiles(), ...options }));
  servers.push(server);
  const { url } = await server.listen("127.0.0.1", 0);
  const page = await (await browser.newContext(context)).newPage();
  const complaints: string[] = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  return { page, world, server, url, complaints };
}

const shows = (page: Page, selector: string, text: string) =>
  page.locator(selector, { hasText: text }).first().waitFor({ timeout: 15_000 });

describe.skipIf(browserPath === undefined)("the dashboard in a browser", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
    await Promise.all(servers.splice(0).map((server) => server.close()));
  });

  afterAll(() => browser?.close());

  it("greets a newcomer with the fence and a command to paste", async () => {
    const { page, url, complaints } = await visit();
    await page.goto(url);
    await shows(page, "#transactions-empty", `curl -X POST ${url}/api/v1/tx`);
    await shows(page, "#readiness", "chain 31337, block 1,200");
    expect(await page.locator("#pipeline .stage").allTextContents()).toEqual([
      "create",
      "allocate",
      "sign",
      "broadcast",
      "receipt",
      "finality",
      "complete",
    ]);
    expect(await page.locator(".lane").count()).toBe(3);
    expect(complaints).toEqual([]);
  });

  it("sends transfers and shows each walk to its completion", async () => {
    const { page, url, world, complaints } = await visit();
    await page.goto(url);
    await page.fill("input[name=count]", "3");
    await page.fill("input[name=amount]", "0.25");
    await page.click("#send-form button");
    await shows(page, "#send-result", "3 transfers accepted, nonces 0 to 2.");
    await shows(page, "#transactions-count", "3 transactions");
    const fence = page.locator(".transaction .fence").first();
    expect(await fence.getAttribute("aria-label")).toBe("2 of 7 stages passed, now: sign");
    for (const [state, stage] of [
      ["PENDING", "broadcast"],
      ["BROADCAST", "receipt"],
      ["MINED", "finality"],
    ] as const) {
      world.step();
      await shows(page, ".transaction .state", state);
      expect(await fence.getAttribute("aria-label")).toContain(`now: ${stage}`);
    }
    world.step();
    await page.locator(".completion").nth(2).waitFor();
    await shows(page, ".transaction .state", "CONFIRMED");
    expect(await page.locator(".completion .seq").allTextContents()).toEqual(["3", "2", "1"]);
    await shows(page, ".lane", "9,998.7654");
    expect(complaints).toEqual([]);
  });

  it("shows what the node says where it refuses", async () => {
    const { page, url } = await visit();
    await page.goto(url);
    await page.fill("input[name=to]", `0x${"0".repeat(40)}`);
    await page.click("#send-form button");
    await shows(page, "#send-result.bad", "Refused: payload.to: is the zero address");
  });

  it("opens a row to attempts and history, and keeps it open while it changes", async () => {
    const { page, url, world } = await visit();
    world.add({ state: "TRACKING", subState: "BROADCAST", requestId: "order-7" });
    await page.goto(url);
    await page.locator(".transaction summary").focus();
    await page.keyboard.press("Enter");
    await shows(page, ".detail table", "initial");
    await shows(page, ".detail .event", "broadcast");
    await shows(page, ".detail", RECIPIENT_EIP55);
    world.step();
    await shows(page, ".detail", "success in block");
    await shows(page, ".detail .event", "mine");
    expect(await page.locator("details").evaluate((details) => details.hasAttribute("open"))).toBe(true);
  });

  it("turns nothing a caller wrote into markup", async () => {
    const { page, url, world, complaints } = await visit();
    const nasty = `<img src=x onerror="document.title='owned'">`;
    world.add({ state: "TRACKING", subState: "PENDING", requestId: nasty, lastError: nasty });
    world.add({ state: "FAILED_FINAL", subState: "REVERTED", requestId: nasty });
    await page.goto(url);
    await shows(page, ".transaction .who", nasty);
    await shows(page, ".completion .who", nasty);
    await page.locator(".transaction summary").last().click();
    await shows(page, ".detail", nasty);
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.title()).toBe("Fencepost");
    expect(complaints).toEqual([]);
  });

  it("asks for a key where the node wants one, and again where it is wrong", async () => {
    const { page, url, world } = await visit({ apiKeys: [{ name: "ops", secret: "correct-horse" }] });
    world.add({ state: "TRACKING", subState: "PENDING", requestId: "order-7" });
    await page.goto(url);
    await page.locator("#key-dialog[open]").waitFor();
    await page.keyboard.press("Escape");
    await page.fill("#key-input", "wrong");
    await page.keyboard.press("Enter");
    await shows(page, "#key-error", "This key is not known");
    await page.fill("#key-input", "correct-horse");
    await page.keyboard.press("Enter");
    await shows(page, ".transaction .who", "order-7");
    await page.locator("#key-dialog[open]").waitFor({ state: "detached" });
    await page.reload();
    await shows(page, ".transaction .who", "order-7");
    expect(await page.locator("#key-dialog[open]").count()).toBe(0);
    expect(await page.evaluate("localStorage.length")).toBe(0);
  });

  it("finds the end of a long feed without reading all of it", async () => {
    const { page, url, world } = await visit();
    for (let n = 0; n < 2_345; n++) world.add({ state: "CONFIRMED", subState: null });
    const requests: string[] = [];
    page.on("request", (request) => request.url().includes("completions") && requests.push(request.url()));
    await page.goto(url);
    await shows(page, "#completions-state", "live, at 2,345");
    expect(await page.locator(".completion").count()).toBe(40);
    expect(await page.locator(".completion .seq").first().textContent()).toBe("2345");
    expect(requests.length).toBeLessThan(40);
    await shows(page, "#transactions-count", "the 30 newest");
  });

  it("says so when the node goes away", async () => {
    const { page, url, server } = await visit();
    await page.goto(url);
    await shows(page, "#readiness", "ready");
    await server.close();
    await shows(page, "#notice", "The node does not answer");
  });

  it.each([390, 768, 1100])("fits a window %i pixels wide", async (width) => {
    const { page, url, world } = await visit({}, { viewport: { width, height: 800 } });
    world.add({ state: "FAILED_FINAL", subState: "NONCE_CONSUMED_EXTERNALLY", requestId: "x".repeat(255) });
    await page.goto(url);
    await page.locator(".transaction summary").click();
    await shows(page, ".detail", "Attempts");
    await page.locator(".completion").first().waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
  });

  it("names every control, and follows the system's colours", async () => {
    const { page, url } = await visit({}, { colorScheme: "dark" });
    await page.goto(url);
    await page.locator(".lane").first().waitFor();
    const nameless = await page.evaluate(
      "[...document.querySelectorAll('input, select, button')].filter((e) => !e.labels?.length && !e.textContent.trim()).length",
    );
    expect(nameless).toBe(0);
    const ground = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const dark = await ground();
    await page.emulateMedia({ colorScheme: "light" });
    expect(await ground()).not.toBe(dark);
  });

  it("serves a reference without complaint", async () => {
    const { page, url, complaints } = await visit();
    await page.goto(`${url}/docs`);
    await page.click("nav a[href='#createTransaction']");
    await shows(page, "#createTransaction h3", "Send a transaction");
    expect(await page.evaluate("getComputedStyle(document.querySelector('nav')).position")).toBe("sticky");
    expect(complaints).toEqual([]);
  });
});
