import { expect, it } from "vitest";
import { type Block, ChainUnavailable } from "../../../src/ports/chain.ts";
import { describeSettlingContract } from "../../contracts/chain/settling.ts";
import {
  type Json,
  lieAboutReceipts,
  lieAboutTags,
  proxyAt,
  startLyingEndpoints,
} from "../../support/lying-endpoints.ts";
import { badGateway, refuseWith, rewrite } from "../../support/rpc-proxy.ts";
import { submitFreely } from "../../support/submit-freely.ts";

for (const endpoints of [1, 2, 3] as const) {
  const name = `EvmChain on EDR, ${endpoints} of its endpoints`;
  describeSettlingContract({ name, endpoints, start: () => startLyingEndpoints(endpoints) });
}

// protects [False receipts] src/adapters/evm/reads/agree.ts
it("a finalized block that one of three endpoints invents is outvoted by the other two, even at the same height", async () => {
  const { chain, proxies, mine, close } = await startLyingEndpoints(3);
  try {
    await mine();
    const fake = rewrite((block) => ({ ...(block as Json), hash: `0x${"ee".repeat(32)}` }));
    const honest = await chain.head("finalized");
    for (const liar of [0, 1, 2]) {
      const lie = lieAboutTags(proxyAt(proxies, liar), fake);
      expect(await chain.head("finalized"), `endpoint ${liar}`).toEqual(honest);
      lie.lift();
    }
  } finally {
    await close();
  }
});

// protects [False receipts] src/adapters/evm/reads/agree.ts
it("a false finalized block number from one of two endpoints is not used", async () => {
  const { chain, proxies, mine, close } = await startLyingEndpoints(2);
  try {
    await mine();
    const honest = await chain.head("finalized");
    const higher = rewrite((block) => ({ ...(block as Json), number: "0x10000" }));
    for (const liar of [0, 1]) {
      const lie = lieAboutTags(proxyAt(proxies, liar), higher);
      expect(await chain.head("finalized"), `endpoint ${liar}`).toEqual(honest);
      lie.lift();
    }
  } finally {
    await close();
  }
});

it.each([
  [-32_000, "unsupported block tag"],
  [-32_601, "the method is not available for this tag"],
  [-32_602, "invalid argument 0"],
  [-32_603, "internal error"],
  // protects [False receipts] src/adapters/evm/reads/agree.ts
])(
  "an endpoint that always answers a block tag with error %i (%s) has no vote on the tagged block",
  async (code, message) => {
    const { chain, proxies, mine, close } = await startLyingEndpoints(2);
    try {
      await mine();
      lieAboutTags(proxyAt(proxies, 0), refuseWith(message, code));
      expect(await chain.head("finalized")).not.toBeNull();
    } finally {
      await close();
    }
  },
);

// protects [False receipts] src/adapters/evm/reads/agree.ts
it("a tagged block is unavailable while an endpoint that has supported the tag fails", async () => {
  const { chain, proxies, mine, close } = await startLyingEndpoints(2);
  try {
    await mine();
    expect(await chain.head("finalized")).not.toBeNull();
    const trouble = lieAboutTags(proxyAt(proxies, 1), refuseWith("database is closed", -32_603));
    await expect(chain.head("finalized")).rejects.toThrow(ChainUnavailable);
    trouble.lift();
    expect(await chain.head("finalized")).not.toBeNull();
  } finally {
    await close();
  }
});

// protects [False receipts] src/adapters/evm/reads/agree.ts
it("an endpoint that no longer supports a block tag after a reconnect loses its vote on the tagged block", async () => {
  const { chain, proxies, mine, close } = await startLyingEndpoints(2);
  try {
    await mine();
    const shown = await chain.head("finalized");
    lieAboutTags(proxyAt(proxies, 1), refuseWith("unsupported block tag"));
    await expect(chain.head("finalized")).rejects.toThrow(ChainUnavailable);
    proxyAt(proxies, 1).rule({ times: 1 }, badGateway);
    await expect(chain.heightReached(1)).rejects.toThrow(ChainUnavailable);
    expect(await chain.head("finalized")).toEqual(shown);
  } finally {
    await close();
  }
});

// protects [Attacks] src/application/stages/7-complete/complete.ts, src/domain/policy/charges.ts, src/adapters/evm/reads/agree.ts
it("costs besides gas that only one of two endpoints reports are counted, and marked as uncertain", async () => {
  const { chain, proxies, transfers, mine, close } = await startLyingEndpoints(2);
  try {
    await submitFreely(chain, transfers);
    await mine();
    const block = (await chain.head("latest")) as Block;
    const asked = block.transactionHashes.map((txHash) => ({ txHash }));
    const beside = async () =>
      (await chain.settleReceipts(block, asked, 0)).map((verdict) =>
        verdict.kind === "agreed" ? [verdict.receipt.besideGas, verdict.receipt.besideGasUnsure] : verdict.kind,
      );
    const saying = (l1Fee: string) => (receipt: Json) => ({ ...receipt, l1Fee });
    for (const [first, second, expected] of [
      ["0x7", "0x7", [7n, undefined]],
      ["0x7", "0x9", [9n, true]],
      ["0x7", "0x0", [7n, true]],
    ] as const) {
      const lies = [first, second].map((fee, at) => lieAboutReceipts(proxyAt(proxies, at), null, saying(fee)));
      expect(await beside()).toEqual(asked.map(() => expected));
      for (const lie of lies) lie.lift();
    }
  } finally {
    await close();
  }
});

// protects [Another program at the key] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
it("another program's transaction is not accepted while two endpoints show different contents for it", async () => {
  const { chain, proxies, mine, sender, transfers, close } = await startLyingEndpoints(2);
  try {
    await submitFreely(chain, transfers);
    await mine();
    const block = await chain.head("latest");
    const txHash = block?.transactionHashes[0];
    if (!block || txHash === undefined) throw new Error("nothing was mined");
    const settle = () => chain.settleReceipts(block, [{ txHash, sentBy: { signer: sender, nonce: 0 } }], 0);
    const [honest] = await settle();
    expect(honest).toMatchObject({ kind: "agreed", sent: { to: `0x${"11".repeat(20)}`, value: 1n, data: "0x" } });
    const dearer = rewrite((transaction) => ({ ...(transaction as Json), value: "0x3e7" }));
    for (const liar of [0, 1]) {
      const lie = proxyAt(proxies, liar).rule({ methods: ["eth_getTransactionByHash"] }, dearer);
      expect(await settle(), `endpoint ${liar}`).toMatchObject([{ kind: "disagree" }]);
      lie.lift();
    }
    expect(await settle()).toEqual([honest]);
  } finally {
    await close();
  }
});
