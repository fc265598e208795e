import { keccak256, parseTransaction, recoverAddress, serializeTransaction } from "viem/utils";
import type { Address, Hash, Hex } from "../../../domain/lane.ts";
import type { Fees } from "../../../domain/transaction/fees.ts";
import type { AccessListEntry } from "../../../domain/transaction/transaction.ts";
import { BadEncoding, type DecodedTransaction } from "../../../ports/codec.ts";

type Parsed = ReturnType<typeof parseTransaction>;
type Signature = Exclude<Parameters<typeof recoverAddress>[0]["signature"], string | Uint8Array>;
type Bare = Parameters<typeof serializeTransaction>[0];
type Serialised = Parameters<typeof parseTransaction>[0];

const UNSIGNED = { r: undefined, s: undefined, v: undefined, yParity: undefined, sidecars: undefined };

/** Decodes a signed payload. Throws `BadEncoding` if viem refuses it. */
export async function decodeTransaction(rawTransaction: Hex): Promise<DecodedTransaction> {
  try {
    const parsed = parseTransaction(rawTransaction as Serialised);
    if (parsed.chainId === undefined) throw new Error("it names no chain (EIP-155)");
    const { r, s, v, yParity } = parsed as Partial<Signature>;
    if (r === undefined || s === undefined) throw new Error("it is not signed");
    const signature = { r, s, v, yParity } as Signature;
    // Blob sidecars are not part of the signed bytes (EIP-4844), and the transaction hash is computed without them.
    const bare = { ...parsed, ...UNSIGNED } as Bare;
    const hasBlobs = "sidecars" in parsed && parsed.sidecars !== undefined;
    const named = hasBlobs ? serializeTransaction(bare, { r, s, yParity } as Signature) : rawTransaction;
    const signer = await recoverAddress({ hash: keccak256(serializeTransaction(bare)), signature });
    return {
      envelope: parsed.type ?? "legacy",
      unsigned: {
        chainId: parsed.chainId,
        nonce: parsed.nonce ?? 0,
        to: (parsed.to?.toLowerCase() ?? null) as Address | null,
        data: parsed.data ?? "0x",
        value: parsed.value ?? 0n,
        gas: parsed.gas ?? 0n,
        fees: feesOf(parsed),
        accessList: (parsed.accessList ?? []) as readonly AccessListEntry[],
      },
      signer: signer.toLowerCase() as Address,
      txHash: keccak256(named) as Hash,
      ...(parsed.maxFeePerBlobGas === undefined
        ? {}
        : { blobFeeCap: parsed.maxFeePerBlobGas, blobGas: blobGas(parsed) }),
    };
  } catch (error) {
    const firstLine = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    throw new BadEncoding("rawTransaction", `is not a signed transaction: ${firstLine}`);
  }
}

/** EIP-4844: GAS_PER_BLOB for each versioned hash. */
function blobGas(parsed: Parsed): bigint {
  const hashes = "blobVersionedHashes" in parsed ? (parsed.blobVersionedHashes ?? []) : [];
  return BigInt(hashes.length) * 131_072n;
}

function feesOf(parsed: Parsed): Fees {
  if (parsed.maxFeePerGas !== undefined) {
    const { maxFeePerGas, maxPriorityFeePerGas = 0n } = parsed;
    return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas };
  }
  return { type: parsed.type === "eip2930" ? "eip2930" : "legacy", gasPrice: parsed.gasPrice ?? 0n };
}
