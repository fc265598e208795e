import { keccak256, serializeTransaction, type TransactionSerializable } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { decodeTransaction } from "../../../../src/adapters/evm/codec/decode-transaction.ts";
import type { Hex } from "../../../../src/domain/lane.ts";
import { BadEncoding } from "../../../../src/ports/codec.ts";

const account = privateKeyToAccount(`0x${"11".repeat(32)}`);
const SIGNER = account.address.toLowerCase();
const TO = `0x${"5e".repeat(20)}` as const;
const common = { chainId: 31337, nonce: 7, to: TO, value: 5n, gas: 60_000n, data: "0xabcd" } as const;
const accessList = [{ address: TO, storageKeys: [`0x${"01".repeat(32)}` as const] }];

const envelopes: readonly [string, TransactionSerializable, object][] = [
  ["legacy", { ...common, type: "legacy", gasPrice: 9n }, { type: "legacy", gasPrice: 9n }],
  ["eip2930", { ...common, type: "eip2930", gasPrice: 9n, accessList }, { type: "eip2930", gasPrice: 9n }],
  [
    "eip1559",
    { ...common, type: "eip1559", maxFeePerGas: 9n, maxPriorityFeePerGas: 2n, accessList },
    { type: "eip1559", maxFeePerGas: 9n, maxPriorityFeePerGas: 2n },
  ],
];

describe("a signed payload", () => {
  it.each(envelopes)(
    "is decoded to the signed fields, for the transaction type %s",
    async (envelope, transaction, fees) => {
      const raw = await account.signTransaction(transaction);
      const decoded = await decodeTransaction(raw);
      expect(decoded).toMatchObject({ envelope, signer: SIGNER, unsigned: { ...common, fees } });
      expect(decoded.unsigned.accessList).toEqual(envelope === "legacy" ? [] : accessList);
    },
  );

  it("has no receiver if it is a deployment", async () => {
    const { to: _, ...deployment } = common;
    const raw = await account.signTransaction({ ...deployment, type: "legacy", gasPrice: 1n });
    expect((await decodeTransaction(raw)).unsigned.to).toBeNull();
  });

  it("keeps the transaction type of an EIP-7702 delegation", async () => {
    const authorization = await account.signAuthorization({ address: TO, chainId: 31337, nonce: 8 });
    const raw = await account.signTransaction({
      ...common,
      type: "eip7702",
      maxFeePerGas: 9n,
      maxPriorityFeePerGas: 2n,
      authorizationList: [authorization],
    });
    expect(await decodeTransaction(raw)).toMatchObject({ envelope: "eip7702", signer: SIGNER });
  });

  it("has the hash of the transaction without blob sidecars", async () => {
    const blob = {
      blob: `0x${"00".repeat(131_072)}`,
      commitment: `0x${"c0".repeat(48)}`,
      proof: `0x${"aa".repeat(48)}`,
    };
    const versionedHash = `0x01${"ab".repeat(31)}` as const;
    const transaction = {
      ...{ ...common, type: "eip4844", maxFeePerGas: 9n, maxPriorityFeePerGas: 2n, maxFeePerBlobGas: 3n },
      blobVersionedHashes: [versionedHash],
    } as const;
    const inBlock = await account.signTransaction(transaction as never);
    const travelling = await account.signTransaction({ ...transaction, sidecars: [blob] } as never);
    expect(travelling.length).toBeGreaterThan(inBlock.length + 2 * 131_072);
    for (const raw of [inBlock, travelling]) {
      expect(await decodeTransaction(raw)).toMatchObject({
        envelope: "eip4844",
        signer: SIGNER,
        txHash: keccak256(inBlock),
        unsigned: { nonce: 7, fees: { maxFeePerGas: 9n } },
        blobFeeCap: 3n,
        blobGas: 131_072n,
      });
    }
  });

  it.each<[string, Hex]>([
    ["nothing", "0x"],
    ["noise", "0xdeadbeef"],
    ["an unsigned payload", serializeTransaction({ ...common, type: "eip1559", maxFeePerGas: 9n })],
    ["a truncated one", "0x02f87083"],
  ])("is refused, with the path of the request field, if it is %s", async (_, raw) => {
    await expect(decodeTransaction(raw)).rejects.toThrow(BadEncoding);
    await expect(decodeTransaction(raw)).rejects.toMatchObject({ path: "rawTransaction" });
  });
});
