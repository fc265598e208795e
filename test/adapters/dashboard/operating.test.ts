import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Call } from "../../../src/contract/calls/call.ts";
import { ROUTES } from "../../../src/contract/routes.ts";
import type { Transaction } from "../../../src/contract/schemas/transaction-schema.ts";
import { browserPath, launchBrowser } from "../../support/browser.ts";
import { night, STUCK_TX } from "../../support/staged/night.ts";
import { Refusal } from "../../support/staged/staged-node.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { leave, shows, visit } from "./visit.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const LANE = `#/lanes/8453/${SIGNER}`;
const GET = { method: "GET", query: new URLSearchParams(), body: null, headers: {} };
const sample = night({ now: () => new Date() })({ ...GET, path: `/tx/${STUCK_TX}` }) as Transaction;

const worth = (value: string) => ({ ...sample, payload: { ...sample.payload, value } });

let browser: Browser;

describe.skipIf(browserPath === undefined)("the dashboard for an operator", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterEach(() => leave(browser));

  afterAll(() => browser?.close());

  // protects [The dashboard] src/adapters/dashboard/public/parts/scopes.js
  it("offers a key without the scope operate no action, and says why", async () => {
    const { page, open } = await visit(browser, { scopes: ["read"] });
    for (const place of ["#/", LANE, `#/tx/${STUCK_TX}`, "#/cluster"]) {
      await open(place);
      await shows(page, ".withheld", "Your key on-call has read: no button for what needs operate");
      const buttons = await page.locator("main button:not(.icon)").allTextContents();
      expect(
        buttons.filter((text) => !["Seen", "Ask the chain", "CSV"].includes(text)),
        place,
      ).toEqual([]);
    }
  });

  it("offers an approver the approval alone", async () => {
    const { page, open } = await visit(browser, { scopes: ["read", "approve"] });
    await open("#/");
    await shows(page, ".withheld", "needs operate");
    expect(await page.locator(".trouble button:not(.icon)").allTextContents()).toEqual(["Approve", "Reject"]);
  });

  // protects [The dashboard] src/adapters/dashboard/public/parts/scopes.js
  it("knows the scope of every action as the contract declares it", async () => {
    const { page, open } = await visit(browser);
    await open("#/");
    const acting = ROUTES.filter(
      ({ method, path, scope }: Call & { method: string; path: string }) =>
        method !== "get" && /^\/api\/v1\/(tx\/\{txId\}|signers|notices|kill)/.test(path) && scope !== "open",
    );
    expect(acting.length).toBeGreaterThan(12);
    const asked = acting.map(({ method, path }) => ({
      method: method.toUpperCase(),
      path,
      action: "",
      label: "",
      body: {},
    }));
    const known = await page.evaluate<string[][]>(
      `import(location.origin + "/dashboard/parts/scopes.js").then(({ scopesFor }) => ${JSON.stringify(asked)}.map(scopesFor))`,
    );
    const declared = acting.map(({ scope }) =>
      scope === "open" ? [] : [scope.scope, ...(scope.or ? [scope.or] : [])],
    );
    expect(known.map((scopes, index) => [asked[index]?.path, [...scopes].sort()])).toEqual(
      declared.map((scopes, index) => [asked[index]?.path, [...scopes].sort()]),
    );
  });

  it("shows receiver, value and call in lists, with the totals of the page", async () => {
    const value = "1234567890123456789";
    const { page, open } = await visit(browser, {
      context: { permissions: ["clipboard-read", "clipboard-write"] },
      scene: ({ path }) =>
        path === "/tx"
          ? { items: [worth(value), { ...sample, txId: `${STUCK_TX.slice(0, -1)}b` }], next: null }
          : undefined,
    });
    await open("#/tx");
    const row = page.locator("tr[data-tx]").first();
    expect(await row.textContent()).toContain("0x8335…2913");
    expect(await row.textContent()).toContain("transfer(0x90f7…b906, 2500000)");
    const amount = row.locator("data.amount");
    expect(await amount.textContent()).toBe("1.2345");
    expect(await amount.getAttribute("title")).toBe("1.234567890123456789 ether, 1234567890123456789 wei");
    await amount.click();
    await shows(page, "#toast", "Copied 1.234567890123456789");
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("1.234567890123456789");
    expect(await page.locator("tfoot").textContent()).toContain("2 transactions");
    expect(await page.locator("tfoot data.amount").last().getAttribute("value")).toBe("1.234567890123456789");
  });

  // protects [The dashboard] src/adapters/dashboard/public/dom.js
  it("keeps the focus while rows appear and disappear", async () => {
    let first = 0;
    const usual = night({ now: () => new Date() });
    const item = (n: number) => ({
      ...sample,
      txId: `${STUCK_TX.slice(0, -4)}${String(1_000 + n)}`,
      requestId: `order-${n}`,
    });
    const { page, open } = await visit(browser, {
      scene: (asked) => {
        if (asked.path === "/tx") return { items: [0, 1, 2, 3].map((n) => item(first + n)), next: null };
        if (asked.path !== "/overview") return undefined;
        const overview = usual({ ...asked, query: new URLSearchParams() }) as { readonly states: object };
        return { ...overview, revision: String(first), states: { ...overview.states, CREATED: first } };
      },
    });
    const focused = () => page.evaluate("document.activeElement?.textContent");
    await open("#/tx");
    await page.locator("a.name", { hasText: "order-2" }).focus();
    first = 1;
    await page.locator("a.name", { hasText: "order-4" }).waitFor();
    expect(await focused()).toBe("order-2");
    first = 3;
    await page.locator("a.name", { hasText: "order-6" }).waitFor();
    expect(await focused(), "the row after the one that left").toBe("order-3");
  });

  describe("raises everything of a lane below the base fee", () => {
    const cheap = (n: number) => ({
      ...sample,
      state: "TRACKING",
      txId: `${STUCK_TX.slice(0, -4)}${2_000 + n}`,
      nonce: n,
    });
    const dear = { ...cheap(44), attempts: [{ ...sample.attempts[0], maxFeePerGas: "9000000000" }] };
    const staged = (refused: string | null) => ({
      scene: ({ path, method, query }: { path: string; method: string; query: URLSearchParams }) => {
        if (method === "POST" && refused !== null && path.includes(refused))
          throw new Refusal(422, "SUBMISSION_REJECTED", "above the ceiling of 10 gwei");
        if (path !== "/tx" || !query.has("state")) return undefined;
        return { items: query.get("state") === "TRACKING" ? [cheap(43), dear, cheap(42)] : [], next: null };
      },
    });

    it("after a preview in gwei and ether, one by one, with each result", async () => {
      const { page, node, open } = await visit(browser, staged("2042"));
      await open(LANE);
      await page.locator("details.menu summary").click();
      await page.getByRole("button", { name: "Raise all below the base fee" }).click();
      const dialog = page.locator("#raise-dialog");
      await shows(page, "#raise-dialog .preview", "2 transactions below 4.8 gwei. Fees at most 0.001443 ether in all");
      expect(await dialog.locator("tbody tr").first().textContent()).toContain("1.211.10.0007215");
      await dialog.locator("button[type=submit]").click();
      expect(
        node.asked.filter(({ method }) => method === "POST"),
        "nothing without a reason",
      ).toEqual([]);
      await dialog.locator("input[name=cap]").fill("8");
      await dialog.locator("textarea").fill("the market moved");
      await dialog.locator("button[type=submit]").click();
      await shows(page, "#raise-dialog .result", "1 raised, 1 refused.");
      await shows(page, "#raise-dialog td .bad", "above the ceiling of 10 gwei");
      const sent = node.asked.filter(({ method }) => method === "POST");
      expect(sent.map(({ path, body }) => [path.slice(-12), body])).toEqual([
        [
          "2042/reprice",
          { reason: "the market moved", maxFeePerGas: "8000000000", maxPriorityFeePerGas: "1500000000" },
        ],
        [
          "2043/reprice",
          { reason: "the market moved", maxFeePerGas: "8000000000", maxPriorityFeePerGas: "1500000000" },
        ],
      ]);
      expect(new Set(sent.map(({ headers }) => headers["idempotency-key"])).size).toBe(2);
    });

    // protects [The dashboard] src/adapters/dashboard/public/parts/raise.js
    it("and sends no further one after Stop", async () => {
      let answer: (value: object) => void = () => undefined;
      const { page, node, open } = await visit(browser, {
        scene: (asked) =>
          asked.method === "POST"
            ? new Promise((resolve) => {
                answer = resolve;
              })
            : staged(null).scene(asked),
      });
      await open(LANE);
      await page.locator("details.menu summary").click();
      await page.getByRole("button", { name: "Raise all below the base fee" }).click();
      await page.locator("#raise-dialog textarea").fill("the market moved");
      await page.locator("#raise-dialog button[type=submit]").click();
      const sent = () => node.asked.filter(({ method }) => method === "POST").length;
      await waitUntil(async () => sent() === 1, "the first is sent");
      await page.getByRole("button", { name: "Stop after this one" }).click();
      answer({});
      await shows(page, "#raise-dialog .result", "1 raised, 0 refused, 1 left as they are.");
      expect(sent()).toBe(1);
    });
  });
});
