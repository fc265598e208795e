/** Tests the SDK with a real node, over a connection that loses responses. */
import { encodeErrorResult, parseAbi } from "viem/utils";
import { describe, expect } from "vitest";
import { createClient, SentTransaction, SubmissionRejectedError } from "../../src/client/index.ts";
import { audit, storedTransactions } from "../support/audit.ts";
import { it, RECIPIENT, SIGNER } from "../support/integration.ts";
import { LosingProxy } from "../support/losing-proxy.ts";
import { revertingInitCode } from "../support/reverting-contracts.ts";
import { range } from "../support/transfers.ts";

const abi = parseAbi(["function take(uint256 amount)", "error Short(address who, uint256 needs)"]);
const data = encodeErrorResult({ abi, errorName: "Short", args: [RECIPIENT, 5n] });

describe("the SDK on a real node", () => {
  // protects [The SDK and the library] src/client/index.ts, src/client/failover.ts
  it("creates one transaction, even if the response is lost after the commit", async ({ edr, nodes, database }) => {
    const node = await nodes.start(edr.url);
    const proxy = await LosingProxy.start(node.url);
    try {
      const client = createClient({ url: proxy.url });
      proxy.lose(2);
      const tx = await client.send({ signer: SIGNER, payload: { to: RECIPIENT, value: 1n } });
      expect(proxy.lost).toEqual([
        { path: "/api/v1/tx", status: 202 },
        { path: "/api/v1/tx", status: 200 },
      ]);
      expect(await storedTransactions(database)).toHaveLength(1);
      proxy.lose(1);
      const many = await client.sendMany(
        range(20).map((index) => ({ signer: SIGNER, payload: { to: RECIPIENT, value: BigInt(index + 2) } })),
      );
      expect(many.map((each) => (each instanceof SentTransaction ? each.nonce : each.code))).toEqual(
        range(20).map((index) => index + 1),
      );
      expect(await storedTransactions(database)).toHaveLength(21);
      const states: string[] = [];
      for await (const { state } of tx) states.push(state);
      expect(states.at(-1)).toBe("CONFIRMED");
      expect((await tx.mined()).receipt).toMatchObject({ txHash: await tx.hash(), status: "success" });
      const deployed = await client.send({ signer: SIGNER, payload: { bytecode: revertingInitCode(data.slice(2)) } });
      const to = (await deployed.final()).receipt?.contractAddress ?? "0x";
      const refused = client.send({ signer: SIGNER, payload: { to, abi, function: "take", args: [5n] } });
      await expect(refused).rejects.toBeInstanceOf(SubmissionRejectedError);
      await expect(refused).rejects.toMatchObject({
        reason: "REVERT",
        revert: { name: "Short", args: [RECIPIENT, "5"], message: `Short(${RECIPIENT}, 5)` },
      });
      for (const each of many) if (each instanceof SentTransaction) await each.final();
      await audit({ database, rpcUrl: edr.url });
    } finally {
      await proxy.close();
    }
  });
});
