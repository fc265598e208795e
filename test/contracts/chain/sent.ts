import { expect, it } from "vitest";
import type { Block, Chain } from "../../../src/ports/chain.ts";
import { account, transfer } from "../../support/signed-transfer.ts";
import { sendUnsignedFreely, submitFreely } from "../../support/submit-freely.ts";
import type { Start } from "../chain.contract.ts";

const GWEI = 1_000_000_000n;
const LOWER_CASE_HASH = /^0x[0-9a-f]{64}$/;

export function sentTests(start: Start): void {
  it("a chain returns the transactions of an address in a block, and its nonce count at each block", async () => {
    const h = await start();
    const { address } = account(h.accounts, 0);
    await submitFreely(h.chain, [await transfer(h, { nonce: 0, value: 5n }), await transfer(h, { nonce: 1 })]);
    await submitFreely(h.chain, [await transfer(h, { from: 1, nonce: 0 })]);
    await h.mine();
    const block = await latest(h.chain);
    await h.mine();
    const sent = await h.chain.sentInBlock(address, block.number);
    expect(sent?.map(({ nonce }) => nonce)).toEqual([0, 1]);
    expect(sent?.[0]).toMatchObject({ from: address, value: 5n, data: "0x", gas: 21_000n });
    expect(sent?.[0]?.fees.type).toBe("eip1559");
    expect(sent?.[0]?.block).toEqual({ number: block.number, hash: block.hash });
    expect(block.transactionHashes).toContain(sent?.[0]?.txHash);
    expect(await h.chain.transaction(sent?.[0]?.txHash as `0x${string}`)).toEqual(sent?.[0]);
    expect(await h.chain.transaction(`0x${"ab".repeat(32)}`)).toBeNull();
    expect(await h.chain.sentInBlock(address, block.number - 1)).toEqual([]);
    expect(await h.chain.sentInBlock(address, block.number + 50)).toBeNull();
    expect(await h.chain.transactionCountAt(address, block.number - 1)).toBe(0);
    expect(await h.chain.transactionCountAt(address, block.number)).toBe(2);
  });

  it("a chain looks up a transaction by sender and nonce, or reports that this is unsupported", async () => {
    const h = await start();
    const { address } = account(h.accounts, 0);
    await submitFreely(h.chain, [await transfer(h, { nonce: 0 })]);
    await h.mine();
    const found = await h.chain.transactionBySenderAndNonce(address, 0);
    if (found === "unsupported") return;
    const block = await latest(h.chain);
    expect(found).toMatchObject({ nonce: 0, from: address, block: { number: block.number, hash: block.hash } });
    expect(await h.chain.transactionBySenderAndNonce(address, 1)).toBeNull();
  });

  it("a chain reports its identity by chain id and genesis hash", async () => {
    const h = await start();
    const identity = await h.chain.identity(null);
    expect(identity.chainId).toBe(h.chain.chainId);
    expect(identity.genesisHash).toMatch(LOWER_CASE_HASH);
    expect(identity.genesisHash).toBe((await h.chain.blocksByNumber([0]))[0]?.hash);
    await h.mine();
    expect(await h.chain.identity(null)).toEqual(identity);
    expect(await h.chain.identityEverywhere()).toEqual([{ kind: "says", answer: identity }]);
  });
}

export function nodeSigningTests(start: Start): void {
  it("a chain node signs and sends with every field as given", async () => {
    const h = await start();
    const { nodeAccount: from } = h;
    const fees = { type: "eip1559", maxFeePerGas: 10n * GWEI, maxPriorityFeePerGas: GWEI } as const;
    const to = account(h.accounts, 1).address;
    const unsigned = {
      chainId: h.chain.chainId,
      nonce: 0,
      to,
      data: "0x",
      value: 3n,
      gas: 22_000n,
      fees,
      accessList: [],
    } as const;
    const sent = await sendUnsignedFreely(h.chain, from, unsigned);
    expect(sent).toMatchObject({ answer: "accepted", txHash: expect.stringMatching(LOWER_CASE_HASH) });
    const pooled = await h.chain.transaction(sent.txHash as `0x${string}`);
    expect(pooled).toMatchObject({ from, nonce: 0, value: 3n, block: null });
    const again = await sendUnsignedFreely(h.chain, from, unsigned);
    expect(again).toMatchObject({ answer: "alreadyKnown", txHash: null });
    await h.mine();
    const block = await latest(h.chain);
    expect(await h.chain.sentInBlock(from, block.number)).toMatchObject([
      { txHash: sent.txHash, nonce: 0, to, value: 3n, data: "0x", gas: 22_000n, fees },
    ]);
    let stopped = false;
    const stoppedSend = h.chain.sendUnsigned(from, { ...unsigned, nonce: 1 }, () => !stopped);
    stopped = true;
    expect(await stoppedSend).toEqual({ answer: "notStarted" });
    const late = await sendUnsignedFreely(h.chain, from, { ...unsigned, value: 4n });
    expect(late).toMatchObject({ answer: "nonceConsumed", txHash: null });
    const nobody = await sendUnsignedFreely(h.chain, `0x${"77".repeat(20)}`, unsigned);
    expect(["unknown", "rejected"]).toContain(nobody.answer);
    expect(nobody.txHash).toBeNull();
  });
}

async function latest(chain: Chain): Promise<Block> {
  const block = await chain.head("latest");
  if (block === null) throw new Error("a chain without a latest block");
  return block;
}
