/** The dashboard must not stay green while the database is frozen, the node is frozen, or a node is killed. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { launchBrowser } from "../support/browser.ts";
import { it, SHORT_LEASE, SIGNER } from "../support/integration.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { waitUntil } from "../support/wait-until.ts";

let browser: Browser;

const read = (url: string, path: string) => fetch(`${url}/api/v1${path}`, { signal: AbortSignal.timeout(30_000) });
const shows = (page: Page, selector: string, hasText: string | RegExp) =>
  page.locator(selector, { hasText }).first().waitFor({ timeout: 40_000 });

async function openNow(url: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`${url}/#/`);
  await shows(page, ".headline h1", "All is well");
  return page;
}

describe("the dashboard under attack", () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  });

  afterAll(() => browser?.close());

  it("names the database in red while the database is frozen", async ({ simulated, nodes, database }) => {
    const proxy = await TcpProxy.start(Number(new URL(database.url).port));
    const node = await nodes.start(simulated.url, { FENCEPOST_DATABASE_URL: proxy.through(database.url) });
    const page = await openNow(node.url);
    const { revision } = await node.client.attention();
    proxy.freeze();
    const held = [read(node.url, "/tx"), read(node.url, `/attention?revision=${revision}&wait=20`)];
    // The node computes the overview once a second for all readers. By the time these requests are answered, the
    // overview that was computed before the freeze is too old to be returned.
    const answers = [...(await Promise.all(held)), await read(node.url, "/overview")];
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
    for (const answer of answers) expect(await answer.text()).toContain("the database does not answer");
    await shows(page, ".headline.blind h1", "The database does not answer");
    expect(await page.title()).toBe("(?) Now · Fencepost");
    expect(await page.locator(".status", { hasText: "live" }).count()).toBe(0);
    proxy.thaw();
    await shows(page, ".status", "live");
    expect(await page.locator(".headline.blind").count()).toBe(0);
    await page.close();
    await proxy.close();
  });

  it("reports that the node does not respond while the node is frozen", async ({ simulated, nodes }) => {
    const node = await nodes.start(simulated.url);
    const page = await openNow(node.url);
    node.signal("SIGSTOP");
    await shows(page, ".headline.blind h1", "The node does not answer");
    expect(await page.title()).toBe("(?) Now · Fencepost");
    node.signal("SIGCONT");
    await shows(page, ".status", "live");
    await page.close();
  });

  it("is red after a node was killed, until somebody acknowledges that it vanished", async ({ simulated, nodes }) => {
    const [lost, node] = await Promise.all([
      nodes.start(simulated.url, SHORT_LEASE),
      nodes.start(simulated.url, SHORT_LEASE),
    ]);
    const page = await openNow(node.url);
    lost.signal("SIGKILL");
    await shows(page, ".trouble.error", `Node ${lost.nodeId} vanished without draining`);
    await page.locator(".trouble[data-code=NODE_VANISHED] button", { hasText: "Acknowledge" }).click();
    await page.locator("#action-dialog textarea").fill("the machine was taken away");
    await page.locator("#action-dialog button[type=submit]").click();
    await page.locator(".trouble[data-code=NODE_VANISHED]").waitFor({ state: "detached" });
    const [notice] = await node.client.notices();
    expect(notice).toMatchObject({
      kind: "NODE_VANISHED",
      nodeId: lost.nodeId,
      acknowledged: { by: "operator:anonymous", why: "the machine was taken away" },
    });
    await page.close();
  });

  it("still shows the use of a stolen key after the node that detected it has stopped", async ({
    simulated,
    nodes,
  }) => {
    const node = await nodes.start(simulated.url, { FENCEPOST_RECONCILIATION_INTERVAL: "1s" });
    await node.client.waitFor((await node.client.send({ signer: SIGNER, payload: { to: SIGNER, value: "1" } })).txId);
    simulated.chain.mineForeign(SIGNER.toLowerCase() as `0x${string}`, 1);
    await waitUntil(async () => (await node.client.notices({ open: true })).length > 0, "the use is noticed");
    node.signal("SIGTERM");
    await node.exited;
    const next = await nodes.start(simulated.url);
    const { items } = await next.client.attention();
    expect(items).toMatchObject([{ severity: "CRITICAL", code: "EXTERNAL_KEY_USE", signer: SIGNER, nonce: 1 }]);
    const [notice] = await next.client.notices({ signer: SIGNER });
    await next.client.acknowledge(notice?.noticeId ?? "", { reason: "a drill", times: notice?.times ?? 0 });
    await waitUntil(async () => (await next.client.attention()).items.length === 0, "it needs nobody any more");
  });
});
