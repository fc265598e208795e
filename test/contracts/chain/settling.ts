import { afterEach, describe, expect, it } from "vitest";
import type { Address, Hash, Hex } from "../../../src/domain/lane.ts";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import type { Block, Chain, Settling } from "../../../src/ports/chain.ts";
import { submitFreely } from "../../support/submit-freely.ts";

/** The kinds of false report that an endpoint may give about a transaction's receipt. */
export const RECEIPT_LIES = ["reverted", "other gas", "a contract", "no receipt"] as const;
export type ReceiptLieKind = (typeof RECEIPT_LIES)[number];

/**
 * A chain behind endpoints that the suite can make report false data or fall behind. Its block hashes can be
 * recomputed.
 */
export interface SettlingHarness {
  readonly chain: Chain;
  /** Signed but unsent transfers of one account, from nonce 0 on. */
  readonly transfers: readonly Hex[];
  readonly sender: Address;
  mine(): Promise<void>;
  /**
   * Makes an endpoint report a false receipt from now on; null restores the true one. Endpoint 0 is the preferred one.
   */
  lie(endpoint: number, txHash: Hash, kind: ReceiptLieKind | null): void;
  /** Hides all blocks above this one from the endpoint; null shows all of them again. */
  pin(endpoint: number, blockNumber: number | null): void;
  /** Sets whether the endpoint supports the block tags `safe` and `finalized`. */
  knowsTags(endpoint: number, knows: boolean): void;
  close(): Promise<void>;
}

const NOWHERE: Hash = `0x${"ab".repeat(32)}`;

export interface SettlingSubject {
  readonly name: string;
  readonly endpoints: 1 | 2 | 3;
  readonly start: () => Promise<SettlingHarness>;
}

/** The contract of `Chain.settleReceipts` and `Chain.secondOpinion`, with one, two and three endpoints. */
export function describeSettlingContract({ name, endpoints, start }: SettlingSubject): void {
  describe(`verification of receipts before finality: ${name}`, () => {
    const open: SettlingHarness[] = [];
    afterEach(async () => {
      await Promise.all(open.splice(0).map((each) => each.close()));
    });
    const mined = async (): Promise<Mined> => {
      const harness = await start();
      open.push(harness);
      await submitFreely(harness.chain, harness.transfers);
      await harness.mine();
      const block = (await harness.chain.head("latest")) as Block;
      const receipts = (await harness.chain.receipts(block.transactionHashes)) as readonly Receipt[];
      return { ...harness, block, receipts, asked: block.transactionHashes.map((txHash) => ({ txHash })) };
    };

    honestyTests(mined);
    lieTests(endpoints, mined);
    senderTests(mined);
    if (endpoints > 1) {
      opinionTests(mined);
      depthTests(mined);
      tagTests(mined);
      indexTests(mined);
    }
  });
}

interface Mined extends SettlingHarness {
  readonly block: Block;
  readonly receipts: readonly Receipt[];
  readonly asked: readonly Settling[];
}

type Start = () => Promise<Mined>;

function honestyTests(start: Start): void {
  it("receipts that every endpoint returns are `agreed`, and come in the requested order", async () => {
    const { chain, block, receipts, asked } = await start();
    expect(receipts.length).toBeGreaterThan(1);
    const verdicts = await chain.settleReceipts(block, asked.toReversed(), 0);
    expect(verdicts).toEqual(receipts.toReversed().map((receipt) => ({ kind: "agreed", receipt })));
    expect(await chain.settleReceipts(block, [], 0)).toEqual([]);
  });

  it("a receipt is absent if the block does not contain the transaction", async () => {
    const { chain, block } = await start();
    expect(await chain.settleReceipts(block, [{ txHash: NOWHERE }], 0)).toMatchObject([{ kind: "absent" }]);
  });

  // protects [False receipts] src/adapters/evm/reads/agree.ts
  it("receipts are `behind` while a reachable endpoint has not reached the block", async () => {
    const { chain, block, asked, pin } = await start();
    const above = { number: block.number + 1, hash: NOWHERE };
    expect(kinds(await chain.settleReceipts(above, asked, 0))).toEqual(asked.map(() => "behind"));
    if (chain.endpoints < 2) return;
    for (let endpoint = 1; endpoint < chain.endpoints; endpoint++) pin(endpoint, block.number - 1);
    expect(kinds(await chain.settleReceipts(block, asked, 0))).toEqual(asked.map(() => "behind"));
    pin(1, null);
    expect(kinds(await chain.settleReceipts(block, asked, 0))).toEqual(asked.map(() => "agreed"));
  });
}

function lieTests(endpoints: 1 | 2 | 3, start: Start): void {
  // protects [False receipts] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
  it.each(RECEIPT_LIES)("a receipt is agreed again once no endpoint reports %s any more", async (kind) => {
    const { chain, block, receipts, asked, lie, mine } = await start();
    await mine();
    const [{ txHash }, ...others] = asked as [Settling, ...Settling[]];
    for (let endpoint = 0; endpoint < endpoints; endpoint++) {
      lie(endpoint, txHash, kind);
      const [verdict, ...rest] = await chain.settleReceipts(block, asked, 0);
      if (endpoints === 3) expect(verdict).toEqual({ kind: "agreed", receipt: receipts[0] });
      else expect(verdict).toMatchObject({ kind: "disagree", answers: Array(endpoints).fill(expect.any(String)) });
      // If a single endpoint contradicts the roots of its own block, nothing that it reports about that block is
      // believed.
      expect(kinds(rest)).toEqual(others.map(() => (endpoints === 1 ? "disagree" : "agreed")));
      lie(endpoint, txHash, null);
      const after = await chain.settleReceipts(block, asked, 0);
      expect(after).toEqual(receipts.map((receipt) => ({ kind: "agreed", receipt })));
    }
  });
}

function indexTests(start: Start): void {
  // protects [False receipts] src/adapters/evm/reads/agree.ts
  it("receipts are `behind` while an endpoint has the newest block but not its receipts", async () => {
    const { chain, block, asked, lie, mine } = await start();
    const [settling] = asked as [Settling];
    lie(1, settling.txHash, "no receipt");
    if (chain.endpoints === 3) lie(2, settling.txHash, "no receipt");
    const settle = async () => kinds(await chain.settleReceipts(block, [settling], 0));
    expect(await settle()).toEqual(["behind"]);
    await mine();
    if (chain.endpoints === 2) expect(await settle()).toEqual(["disagree"]);
    lie(0, settling.txHash, "no receipt");
    // Now every endpoint has the transaction in the block and none returns its receipt, so no endpoint contradicts
    // another.
    expect(await settle()).toEqual(["behind"]);
  });
}

function senderTests(start: Start): void {
  // protects [False receipts] src/application/stages/6-finality/finality.ts
  it("a receipt is absent if the transaction has another sender or nonce than expected", async () => {
    const { chain, block, receipts, asked, sender } = await start();
    const [{ txHash }] = asked as [Settling];
    const settle = (signer: Address, nonce: number) =>
      chain.settleReceipts(block, [{ txHash, sentBy: { signer, nonce } }], 0);
    expect(await settle(sender, 0)).toMatchObject([{ kind: "agreed", receipt: receipts[0], sent: { data: "0x" } }]);
    expect(await settle(sender, 1)).toMatchObject([{ kind: "absent" }]);
    expect(await settle(`0x${"77".repeat(20)}`, 0)).toMatchObject([{ kind: "absent" }]);
  });
}

function opinionTests(start: Start): void {
  it("a block is `behind` while one of two endpoints has not reached the block", async () => {
    const { chain, block, pin } = await start();
    expect(await chain.secondOpinion(block.number)).toEqual({ kind: "agreed", hash: block.hash });
    for (let endpoint = 1; endpoint < chain.endpoints; endpoint++) pin(endpoint, block.number - 1);
    expect(await chain.secondOpinion(block.number)).toEqual({ kind: "behind" });
  });
}

/**
 * Tests whether a block is deep enough, which follows from each endpoint's newest block and from block tags. One
 * endpoint may claim blocks that no other endpoint has.
 */
function depthTests(start: Start): void {
  const pinOthers = ({ chain, pin }: Mined, blockNumber: number | null) => {
    for (let endpoint = 1; endpoint < chain.endpoints; endpoint++) pin(endpoint, blockNumber);
  };

  // protects [False receipts] src/adapters/evm/reads/agree.ts, src/application/stages/6-finality/finality.ts
  it("receipts are `behind` while only the first endpoint has the required number of blocks above their block", async () => {
    const harness = await start();
    const { chain, block, asked, mine } = harness;
    const settle = async (depth: number) => kinds(await chain.settleReceipts(block, asked, depth));
    await mine();
    await mine();
    pinOthers(harness, block.number + 1);
    expect(await settle(1)).toEqual(asked.map(() => "agreed"));
    expect(await settle(2)).toEqual(asked.map(() => "behind"));
    pinOthers(harness, null);
    expect(await settle(2)).toEqual(asked.map(() => "agreed"));
  });

  // protects [False receipts] src/adapters/evm/reads/agree.ts
  it("the depth of a block counts only as far as two endpoints confirm the depth", async () => {
    const harness = await start();
    const { chain, block, mine } = harness;
    await mine();
    await mine();
    const top = block.number + 2;
    const tagged = async () => (await chain.head("finalized"))?.number;
    expect([await chain.heightReached(top), await chain.heightReached(top - 1)]).toEqual([top, top - 1]);
    const before = await tagged();
    pinOthers(harness, block.number);
    expect(await chain.heightReached(top)).toBe(block.number);
    expect(await tagged()).toBe((before as number) - 2);
    pinOthers(harness, null);
    expect(await tagged()).toBe(before);
  });
}

/**
 * Not every node supports every tag. An endpoint that denies a tag must not make the others fall back to a weaker rule.
 */
function tagTests(start: Start): void {
  const others = ({ chain, knowsTags }: Mined, knows: boolean) => {
    for (let endpoint = 1; endpoint < chain.endpoints; endpoint++) knowsTags(endpoint, knows);
  };

  // protects [False receipts] src/adapters/evm/reads/agree.ts
  it("the finality tag of a single endpoint is used if no other endpoint ever had one", async () => {
    const harness = await start();
    const { chain, block } = harness;
    others(harness, false);
    const shown = await chain.head("finalized");
    expect(shown?.number).toBeLessThanOrEqual(block.number);
    others(harness, true);
    expect(await chain.head("finalized")).toEqual(shown);
  });

  // protects [False receipts] src/adapters/evm/reads/agree.ts
  it("a finality tag is not used if an endpoint reported it before and no longer does", async () => {
    const harness = await start();
    const { chain } = harness;
    expect(await chain.head("finalized")).not.toBeNull();
    for (let endpoint = 1; endpoint < chain.endpoints; endpoint++) {
      harness.knowsTags(endpoint, true);
      await chain.head("finalized");
    }
    harness.knowsTags(0, false);
    if (chain.endpoints === 3) harness.knowsTags(2, false);
    expect(await chain.head("finalized")).toBeNull();
  });

  it("there is no finality tag if no endpoint shows one", async () => {
    const harness = await start();
    const { chain, knowsTags } = harness;
    knowsTags(0, false);
    others(harness, false);
    expect(await chain.head("finalized")).toBeNull();
    knowsTags(0, true);
    expect(await chain.head("finalized")).not.toBeNull();
    knowsTags(0, false);
    expect(await chain.head("finalized")).toBeNull();
  });
}

function kinds(verdicts: readonly { readonly kind: string }[]): readonly string[] {
  return verdicts.map(({ kind }) => kind);
}
