import { keccak256, parseTransaction } from "viem/utils";
import { createCodec } from "../../src/adapters/evm/codec/codec.ts";
import { viewOf } from "../../src/adapters/evm/codec/decode-transaction.ts";
import type { Address, Hash, Hex } from "../../src/domain/lane.ts";
import type { Fees } from "../../src/domain/transaction/fees.ts";
import type { AccessListEntry } from "../../src/domain/transaction/transaction.ts";
import type { Codec, DecodedTransaction } from "../../src/ports/codec.ts";

/** The real codec, except for bytes that `FakeSigner` signed, from which no key can be recovered. */
export function createFakeCodec(): Codec {
  return {
    ...createCodec(),
    decodeTransaction: async (raw) => decodeFake(raw),
    transactionObject: async (raw) => viewOf(raw, decodeFake(raw)),
  };
}

function decodeFake(raw: Hex): DecodedTransaction {
  const parsed = parseTransaction(raw as Parameters<typeof parseTransaction>[0]);
  const { chainId = 0, nonce = 0, to, data = "0x", value = 0n, gas = 0n, type = "legacy" } = parsed;
  const { r } = parsed as { readonly r?: Hex };
  const { blobVersionedHashes = [] } = parsed as { readonly blobVersionedHashes?: readonly Hex[] };
  const accessList = (parsed.accessList ?? []) as readonly AccessListEntry[];
  return {
    envelope: type,
    unsigned: { chainId, nonce, to: lowered(to), data, value, gas, fees: feesOf(parsed), accessList },
    signer: `0x${(r ?? "").slice(-40)}`,
    txHash: keccak256(raw) as Hash,
    ...(parsed.maxFeePerBlobGas === undefined
      ? {}
      : { blobFeeCap: parsed.maxFeePerBlobGas, blobGas: BigInt(blobVersionedHashes.length) * 131_072n }),
  };
}

function lowered(address: string | null | undefined): Address | null {
  return (address?.toLowerCase() as Address | undefined) ?? null;
}

function feesOf({ type, gasPrice, maxFeePerGas, maxPriorityFeePerGas }: ReturnType<typeof parseTransaction>): Fees {
  if (maxFeePerGas !== undefined) {
    return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n };
  }
  return { type: type === "eip2930" ? "eip2930" : "legacy", gasPrice: gasPrice ?? 0n };
}
