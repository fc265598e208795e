/** Two endpoints of one real chain, a private and a public one. Each records the transactions that it receives. */
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect } from "vitest";
import { it, RECIPIENT, SHORT_LEASE } from "../support/integration.ts";
import { type RpcProxy, refuseWith, startRpcProxy } from "../support/rpc-proxy.ts";
import { transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const QUICKLY = { ...SHORT_LEASE, FENCEPOST_RESUBMIT_INTERVAL: "300ms", FENCEPOST_REPRICE: "off" };
const sends = ({ calls }: RpcProxy) => calls.filter(({ method }) => method === "eth_sendRawTransaction").length;

async function twoEndpoints(url: string) {
  const [open, hidden] = await Promise.all([startRpcProxy(url), startRpcProxy(url)]);
  // The private endpoint answers "already known" to every send and never mines the transaction. So the node keeps
  // sending it again.
  hidden.rule({ methods: ["eth_sendRawTransaction"] }, refuseWith("already known"));
  return { open, hidden, close: () => Promise.all([open.close(), hidden.close()]) };
}

/** A transfer signed by a key that no node holds. */
function strangersTransfer(chainId: number): Promise<string> {
  const account = privateKeyToAccount(`0x${"77".repeat(32)}`);
  return account.signTransaction({
    chainId,
    nonce: 0,
    to: RECIPIENT,
    value: 1n,
    gas: 21_000n,
    maxFeePerGas: 10n ** 10n,
  });
}

describe("a transaction for a private endpoint", () => {
  it("reaches no public endpoint through resubmission, a takeover or a new configuration", async ({ edr, nodes }) => {
    const { open, hidden, close } = await twoEndpoints(edr.url);
    try {
      const first = await nodes.start(`${open.url},${hidden.url}#send=only`, QUICKLY);
      const { txId } = await first.client.send(transfer(0));
      await waitUntil(() => sends(hidden) >= 3, "the private endpoint is given it again and again");
      const { causes } = await first.client.explain(txId);
      expect(causes.map(({ code }) => code)).toContain("SENT_PRIVATELY");
      first.signal("SIGKILL");
      const before = sends(hidden);
      const second = await nodes.start(`${open.url},${hidden.url}#send=only`, QUICKLY);
      await waitUntil(() => sends(hidden) > before + 1, "the next owner keeps to the private endpoint");
      second.signal("SIGKILL");
      const third = await nodes.start(open.url, QUICKLY);
      await waitUntil(
        async () => (await third.client.get(txId)).lastError?.includes("no endpoint could be asked") === true,
        "an owner without the private endpoint finds nobody to give it to",
      );
      expect(sends(open)).toBe(0);
      await third.client.resubmit(txId, { reason: "the builder is gone", disclose: true });
      await waitUntil(async () => (await third.client.get(txId)).state === "CONFIRMED", "it is disclosed and mined");
      expect((await third.client.get(txId)).attempts.some((attempt) => attempt.private)).toBe(false);
    } finally {
      await close();
    }
  });

  it("is sent to public endpoints only once publicAfter is over", async ({ edr, nodes }) => {
    const { open, hidden, close } = await twoEndpoints(edr.url);
    try {
      const settings = { ...QUICKLY, FENCEPOST_PUBLIC_AFTER: "2s" };
      const node = await nodes.start(`${open.url},${hidden.url}#send=only`, settings);
      const { txId } = await node.client.send(transfer(0));
      await waitUntil(() => sends(open) > 0, "publicAfter is over");
      const { attempts } = await node.client.get(txId);
      const firstSentAt = new Date(attempts[0]?.firstSentAt ?? "").getTime();
      const { history } = await node.client.get(txId, { include: ["history"] });
      const disclosed = history?.find(({ reason }) => reason?.includes("publicAfter"));
      expect(new Date(disclosed?.firstAt ?? "").getTime() - firstSentAt).toBeGreaterThanOrEqual(2_000);
      await waitUntil(async () => (await node.client.get(txId)).state === "CONFIRMED", "it is mined");
    } finally {
      await close();
    }
  });

  it("reaches no public endpoint if submitted as raw bytes through /rpc", async ({ edr, nodes }) => {
    const { open, hidden, close } = await twoEndpoints(edr.url);
    try {
      const node = await nodes.start(`${open.url},${hidden.url}#send=only`, { FENCEPOST_RPC_FOREIGN_RAW: "pass" });
      const body = {
        jsonrpc: "2.0",
        id: 1,
        method: "eth_sendRawTransaction",
        params: [await strangersTransfer(edr.chainId)],
      };
      await fetch(`${node.url}/rpc`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      expect([sends(open), sends(hidden)]).toEqual([0, 1]);
    } finally {
      await close();
    }
  });
});
