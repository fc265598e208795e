/**
 * On a real node, database and chain, a person uses only the page to find and repair a fault. The test itself only
 * causes the fault and sends funds, which no page can do.
 */
import { type Stack, startFencepost } from "fencepost/testing";
import type { Browser, Page } from "playwright-core";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { launchBrowser } from "../../support/browser.ts";
import { crowding } from "../../support/crowding.ts";
import { waitUntil } from "../../support/wait-until.ts";

const RECIPIENT: `0x${string}` = "0x00000000000000000000000000000000000000AA";
const GWEI = 1_000_000_000n;
const A_MINUTE = 60_000;

/** With these settings faults appear within seconds, and nothing repairs itself. */
const SETTINGS = {
  FENCEPOST_REPRICE: "off",
  FENCEPOST_STUCK_AFTER: "4s",
  FENCEPOST_RESUBMIT_INTERVAL: "2s",
  FENCEPOST_EXPIRED_RESERVATIONS: "hole",
  FENCEPOST_RECONCILIATION_INTERVAL: "1s",
  FENCEPOST_STALE_RECEIPT_TIMEOUT: "1s",
};

/** The fourth account that every development chain funds. The node signs with its key, and so does another program. */
const account = privateKeyToAccount("0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6");

let browser: Browser;
let stack: Stack;
let page: Page;

const signer = (index: number) => stack.signers[index] as `0x${string}`;
const transfer = (index: number, fees: object = {}) => ({
  signer: signer(index),
  requestId: `payout-${index}`,
  payload: { to: RECIPIENT, value: 1000n, ...fees },
});

/** The first row about this signer on the dashboard page "Now". */
const trouble = (index: number) =>
  page.locator(".trouble", { has: page.locator(`a[title="${signer(index)}"]`) }).first();

async function act(button: string, reason: string, fields: Readonly<Record<string, string>> = {}): Promise<void> {
  await page.getByRole("button", { name: button, exact: true }).first().click();
  for (const [name, value] of Object.entries(fields))
    await page.locator(`#action-dialog input[name=${name}]`).fill(value);
  await page.locator("#action-dialog textarea").fill(reason);
  await page.locator("#action-dialog button[type=submit]").click();
  await page.locator("#action-dialog[open]").waitFor({ state: "detached" });
}

/**
 * Resolves when the page shows no error of the lane any more. Alerts of lower severity stay on the page for a while.
 */
const repaired = (index: number) =>
  page
    .locator(".trouble.error, .trouble.critical", { has: page.locator(`a[title="${signer(index)}"]`) })
    .first()
    .waitFor({ state: "detached", timeout: A_MINUTE });

/** Runs the steps of a person on the page. Fails if they take longer than a minute. */
async function withinAMinute(work: () => Promise<void>): Promise<void> {
  const began = performance.now();
  await page.goto(`${stack.url}/#/`);
  await work();
  expect(performance.now() - began).toBeLessThan(A_MINUTE * crowding());
}

describe("an operator who uses only the dashboard", () => {
  beforeAll(async () => {
    [browser, stack] = await Promise.all([
      launchBrowser(),
      startFencepost({ signers: 4, blockTimeMs: 200, databaseUrl: inject("postgres").adminUrl, settings: SETTINGS }),
    ]);
    page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  });

  afterAll(async () => {
    await browser?.close();
    await stack?.stop();
  });

  it("finds a hole in the nonces and fills it", async () => {
    await stack.client.reserveNonce({ signer: signer(0), ttl: 1 });
    const { txId } = await stack.client.send(transfer(0));
    await waitUntil(async () => (await stack.client.get(txId)).state === "STUCK", "the head is stuck");
    await withinAMinute(async () => {
      const found = trouble(0);
      await found.waitFor();
      await found.locator("a.hex").click();
      await page.locator(".strip .nonce.hole").waitFor();
      await act("Fill the hole", "nobody will use this reservation any more");
      await page.locator(".top nav a", { hasText: "Now" }).click();
      await page.locator(".headline").waitFor();
      await repaired(0);
    });
    expect(await stack.client.waitFor(txId, { timeoutMs: A_MINUTE })).toMatchObject({ state: "CONFIRMED" });
    // The placeholder was mined, and the page shows no failed transaction.
    await page.goto(`${stack.url}/#/tx?state=FAILED_FINAL`);
    await page.locator("tr[data-tx] .state.closed").waitFor();
    expect(await page.locator("tr[data-tx] .state.failed").count()).toBe(0);
  });

  it("finds a signer without funds, and the address to fund", async () => {
    await stack.client.suspend(signer(1), { reason: "the test begins" });
    const { txId } = await stack.client.send(transfer(1, { value: String(10n ** 18n), gas: "21000" }));
    await stack.chain.rpc("hardhat_setBalance", [signer(1), "0x1"]);
    await stack.client.resume(signer(1), { reason: "the test goes on" });
    await withinAMinute(async () => {
      const found = trouble(1).filter({ hasText: /funds|balance/i });
      await found.waitFor({ timeout: A_MINUTE });
      await found.locator("a.hex").click();
      const address = page.locator(".facts div", { hasText: "Address" }).locator("code");
      await address.waitFor();
      const shown = (await address.textContent()) ?? "";
      await stack.chain.rpc("hardhat_setBalance", [shown, `0x${(10n ** 19n).toString(16)}`]);
      await page.locator(".top nav a", { hasText: "Now" }).click();
      await page.locator(".headline").waitFor();
      await repaired(1);
    });
    expect(await stack.client.waitFor(txId, { timeoutMs: A_MINUTE })).toMatchObject({ state: "CONFIRMED" });
  });

  it("finds a fee below the market, and raises it", async () => {
    await stack.chain.setBaseFee(2n * GWEI);
    const fees = { gas: "21000", maxFeePerGas: String(3n * GWEI), maxPriorityFeePerGas: String(GWEI) };
    await stack.chain.pauseMining();
    const { txId } = await stack.client.send(transfer(2, fees));
    await stack.chain.setBaseFee(9n * GWEI);
    await stack.chain.mine();
    await stack.chain.resumeMining();
    await withinAMinute(async () => {
      const found = trouble(2);
      await found.waitFor({ timeout: A_MINUTE });
      await found.locator("a.name").click();
      await page.locator(".fee-bar.short").waitFor();
      await act("Raise the fee", "the market moved", { maxFee: "20", tip: "2" });
      await page.locator(".top nav a", { hasText: "Now" }).click();
      await page.locator(".headline").waitFor();
      await repaired(2);
    });
    expect(await stack.client.waitFor(txId, { timeoutMs: A_MINUTE })).toMatchObject({ state: "CONFIRMED" });
  });

  it("can repair a lane after another program used a nonce", async () => {
    await stack.chain.setBaseFee(null);
    await stack.client.waitFor((await stack.client.send(transfer(3))).txId);
    await stack.chain.pauseMining();
    const { txId, nonce } = await stack.client.send({ ...transfer(3), requestId: "payout-3b" });
    await waitUntil(async () => (await stack.client.get(txId)).subState === "BROADCAST", "it is with the chain");
    const foreign = await account.signTransaction({
      chainId: stack.chainId,
      to: RECIPIENT,
      value: 7n,
      nonce: Number(nonce),
      gas: 21_000n,
      maxFeePerGas: 200n * GWEI,
      maxPriorityFeePerGas: 200n * GWEI,
    });
    await stack.chain.rpc("eth_sendRawTransaction", [foreign]);
    await stack.chain.resumeMining();
    await waitUntil(async () => (await stack.client.get(txId)).state === "FAILED_FINAL", "its nonce is lost");
    await withinAMinute(async () => {
      const found = trouble(3);
      await found.waitFor({ timeout: A_MINUTE });
      await found.locator("a.hex").click();
      await page.locator(".strip .nonce.foreign").first().waitFor();
      await act("Suspend the lane", "another program signs with this key");
      await page.getByRole("button", { name: "Resume the lane" }).first().waitFor();
      await page.locator(".strip a.nonce.foreign").first().click();
      await page.locator(".state", { hasText: "nonce consumed externally" }).waitFor();
      await page.goBack();
      await page.locator(".foreign-use").waitFor();
      await act("Acknowledge", "a script of ours, which was stopped");
      await page.locator(".foreign-use").waitFor({ state: "detached" });
      await page.locator("section li", { hasText: "acknowledged by operator:" }).waitFor();
      await act("Resume the lane", "the other program was stopped");
      await page.getByRole("button", { name: "Suspend the lane" }).waitFor();
      await page.locator(".top nav a", { hasText: "Now" }).click();
      await page.locator(".headline").waitFor();
      await repaired(3);
    });
    const [notice] = await stack.client.notices({ signer: signer(3) });
    expect(notice).toMatchObject({ acknowledged: { why: "a script of ours, which was stopped" } });
    const after = await stack.client.send({ ...transfer(3), requestId: "payout-3c" });
    expect(await stack.client.waitFor(after.txId, { timeoutMs: A_MINUTE })).toMatchObject({ state: "CONFIRMED" });
  });
});
