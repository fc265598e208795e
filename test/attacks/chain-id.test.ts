/** An endpoint reports a wrong chain id to a real node: at start, and after a reconnect. */
import { describe, expect } from "vitest";
import { untilSettled } from "../support/audit.ts";
import { it } from "../support/integration.ts";
import { pretend, startRpcProxy } from "../support/rpc-proxy.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const saysOne = pretend(() => "0x1");

describe("an endpoint that reports another chain id", () => {
  it("is refused at start if the database is used for another chain", async ({ edr, nodes, database }) => {
    const proxy = await startRpcProxy(edr.url);
    try {
      const first = await nodes.start(proxy.url);
      expect(first.stderr() + first.stdout()).toContain("chain.adopted");
      await first.client.send(pricedTransfer(0));
      await untilSettled(database, 1);
      first.signal("SIGTERM");
      await first.exited;
      const lie = proxy.rule({ methods: ["eth_chainId"] }, saysOne);
      const refused = nodes.spawn(proxy.url);
      await expect(refused.ready).rejects.toThrow(/reports chain 1, but this database has only served 31337/);
      expect((await refused.exited).code).not.toBe(0);
      expect(await database.query("SELECT 1 FROM fencepost.lane WHERE chain_id = 1")).toEqual([]);
      expect(await database.query("SELECT 1 FROM fencepost.served_chain WHERE chain_id = 1")).toEqual([]);
      const mismatched = nodes.spawn(proxy.url, { FENCEPOST_CHAIN_ID: "31337" });
      await expect(mismatched.ready).rejects.toThrow(/chain 31337 is configured/);
      const named = await nodes.start(proxy.url, { FENCEPOST_CHAIN_ID: "1" });
      named.signal("SIGTERM");
      await named.exited;
      lie.lift();
    } finally {
      await proxy.close();
    }
  });

  it("receives no transaction after a reconnection", async ({ edr, nodes }) => {
    const proxy = await startRpcProxy(edr.url);
    try {
      const node = await nodes.start(proxy.url);
      proxy.rule({ methods: ["eth_chainId"] }, saysOne);
      proxy.hangUp();
      await waitUntil(() => node.stderr().includes("RPC_WRONG_CHAIN"), "the other chain is noticed");
      const sent = () => proxy.calls.filter(({ method }) => method === "eth_sendRawTransaction").length;
      const before = sent();
      await node.client.send(pricedTransfer(1)).catch(() => undefined);
      expect(sent()).toBe(before);
    } finally {
      await proxy.close();
    }
  });
});
