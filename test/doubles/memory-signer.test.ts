import { expect, it } from "vitest";
import type { Address } from "../../src/domain/lane.ts";
import type { UnsignedTransaction } from "../../src/domain/transaction/transaction.ts";
import { addressOf, describeSignerContract } from "../contracts/signer.contract.ts";
import { FakeSigner, MemorySigner } from "./memory-signer.ts";
import { SimulatedChain } from "./simulated-chain/core.ts";
import { senderFromFakeSignature } from "./simulated-chain/sender.ts";

describeSignerContract("in memory", async (keys) => new MemorySigner(keys));
describeSignerContract("forged", async (keys) => new FakeSigner(keys.map(addressOf)), {
  signatures: false,
  repeats: false,
});

const sender: Address = `0x00${"ab".repeat(19)}`;
const transfer: UnsignedTransaction = {
  chainId: 31_337,
  nonce: 0,
  to: `0x${"22".repeat(20)}`,
  data: "0x",
  value: 1n,
  gas: 60_000n,
  fees: { type: "eip1559", maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: 1n },
  accessList: [],
};

it("fake signatures let the simulated chain recover the sender, for all three transaction types", async () => {
  const chain = new SimulatedChain({ recoverSender: senderFromFakeSignature });
  const signer = new FakeSigner([sender]);
  const signed = await signer.sign(sender, [
    transfer,
    { ...transfer, nonce: 1, fees: { type: "legacy", gasPrice: 2_000_000_000n } },
    { ...transfer, nonce: 2, to: null, fees: { type: "eip2930", gasPrice: 2_000_000_000n } },
  ]);
  for (const { rawTransaction, txHash } of signed) {
    expect(chain.submit(rawTransaction)).toEqual({ accepted: true, hash: txHash });
  }
  chain.mine();
  expect(chain.account(sender).nonce).toBe(3);
  await expect(signer.sign(`0x${"cd".repeat(20)}`, [transfer])).rejects.toThrow(/no key/);
});

it("fake signatures of the same transaction differ each time, like those of key services", async () => {
  const signer = new FakeSigner([sender]);
  const [[first], [second]] = [await signer.sign(sender, [transfer]), await signer.sign(sender, [transfer])];
  expect(second?.txHash).not.toBe(first?.txHash);
});
