import { privateKeyToAccount } from "viem/accounts";
import { afterEach, describe, expect, it } from "vitest";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import { type ChainHarness, describeChainContract } from "../../contracts/chain.contract.ts";
import { startEdrHarness } from "../../support/edr-harness.ts";
import { REVERT_DATA, revertingInitCode } from "../../support/reverting-contracts.ts";
import { account } from "../../support/signed-transfer.ts";
import { submitFreely } from "../../support/submit-freely.ts";

describeChainContract("EvmChain on EDR", { evm: true }, startEdrHarness);

describe("EvmChain on a real EVM", () => {
  const open: ChainHarness[] = [];
  const start = async () => {
    const harness = await startEdrHarness();
    open.push(harness);
    return harness;
  };
  afterEach(async () => {
    await Promise.all(open.splice(0).map((each) => each.close()));
  });

  async function sign(h: ChainHarness, nonce: number, call: { to?: Address; data?: Hex }): Promise<Hex> {
    const fees = { gas: 500_000n, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n };
    const signer = privateKeyToAccount(account(h.accounts, 0).privateKey);
    return signer.signTransaction({ type: "eip1559", chainId: h.chain.chainId, nonce, ...fees, ...call });
  }

  it("reports a mined transaction that reverted as reverted", async () => {
    const h = await start();
    const to = h.reverting?.withReason;
    if (to === undefined) throw new Error("no reverting contract");
    const data = revertingInitCode(REVERT_DATA.withPanic);
    await submitFreely(h.chain, [await sign(h, 0, { to }), await sign(h, 1, { data })]);
    await h.mine();
    const block = await h.chain.head("latest");
    const [reverted, deployed] = await h.chain.receipts(block?.transactionHashes ?? []);
    expect(reverted).toMatchObject({ status: "reverted", contractAddress: null });
    expect(deployed).toMatchObject({ status: "success", contractAddress: expect.stringMatching(/^0x[0-9a-f]{40}$/) });
    const from = account(h.accounts, 0).address;
    const call = { from, to: deployed?.contractAddress ?? null, data: "0x", value: 0n } as const;
    expect(await h.chain.simulate(call)).toMatchObject({ outcome: "revert", revert: { name: "Panic" } });
  });

  it("reports that an endless loop exceeds the gas limit", async () => {
    const h = await start();
    const endless = { from: account(h.accounts, 0).address, to: null, data: "0x5b600056", value: 0n } as const;
    expect((await h.chain.simulate(endless)).outcome).toBe("gasOverBlock");
    expect((await h.chain.simulate({ ...endless, gas: 100_000n })).outcome).toBe("gasTooLow");
    const broken = { ...endless, data: "0xfe" } as const;
    expect((await h.chain.simulate(broken)).outcome).toBe("revert");
  });
});
