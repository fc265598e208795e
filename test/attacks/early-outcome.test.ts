/** One of two endpoints falsely reports that a mined transaction reverted. Nothing may act on that report. */
import { describe, expect } from "vitest";
import { it } from "../support/integration.ts";
import { lieAboutReceipts, proxyAt } from "../support/lying-endpoints.ts";
import { startRpcProxy } from "../support/rpc-proxy.ts";
import { transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

describe("a revert that only one of two endpoints reports", () => {
  // protects [False receipts] src/adapters/http/exchange/views.ts, src/client/sent-transaction.ts
  it("never ends a wait for the receipt", async ({ edr, nodes }) => {
    const proxies = await Promise.all([1, 2].map(() => startRpcProxy(edr.url)));
    try {
      const lie = lieAboutReceipts(proxyAt(proxies, 0), null, (receipt) => ({ ...receipt, status: "0x0" }));
      const node = await nodes.start(proxies.map(({ url }) => url).join(","));
      const sent = await node.client.send(transfer(0));
      const mined = sent.mined({ timeoutMs: 60_000 });
      const shown = () => node.client.get(sent.txId);
      await waitUntil(async () => (await shown()).subState === "MINED", "one endpoint shows a receipt");
      expect((await shown()).receipt).toMatchObject({ status: "reverted", verified: false });
      await waitUntil(() => node.stderr().includes("RPC_DISAGREES"), "the lie is alerted");
      await expect(sent.mined({ timeoutMs: 500 })).rejects.toThrow();
      lie.lift();
      expect(await mined).toMatchObject({ state: "CONFIRMED", receipt: { status: "success", verified: true } });
    } finally {
      await Promise.all(proxies.map((proxy) => proxy.close()));
    }
  });
});
