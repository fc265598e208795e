import { keccak256, parseTransaction, recoverAddress, serializeTransaction } from "viem/utils";
import type { Fees } from "../../domain/fees.ts";
import type { Address, Hash, Hex } from "../../domain/lane.ts";
import type { AccessListEntry } from "../../domain/transaction.ts";
import { BadEncoding, type DecodedTransaction } from "../../ports/codec.ts";

type Parsed = ReturnType<typeof parseTransaction>;
type Signature = Exclude<Parameters<typeof recoverAddress>[0]["signature"], string | Uint8Array>;
type Serialised = Parameters<typeof parseTransaction>[0];

/** Reads a signed payload back. What the library refuses was signed wrongly: `BadEncoding`. */
export async function decodeTransaction(rawTransaction: Hex): Promise<DecodedTransaction> {
  try {
    const parsed = parseTransaction(rawTransaction as Serialised);
    if (parsed.chainId === undefined) throw new Error("it names no chain (EIP-155)");
    const signer = await recoverSigner(parsed);
    return {
      envelope: parsed.type ?? "legacy",
      unsigned: {
        chainId: parsed.chainId,
        nonce: parsed.nonce ?? 0,
        to: lowered(parsed.to ?? null),
        data: parsed.data ?? "0x",
        value: parsed.value ?? 0n,
        gas: parsed.gas ?? 0n,
        fees: feesOf(parsed),
        accessList: (parsed.accessList ?? []) as readonly AccessListEntry[],
      },
      signer: signer.toLowerCase() as Address,
      txHash: keccak256(withoutBlobs(parsed) ?? rawTransaction) as Hash,
      ...(parsed.maxFeePerBlobGas === undefined
        ? {}
        : { blobFeeCap: parsed.maxFeePerBlobGas, blobGas: blobGas(parsed) }),
    };
  } catch (error) {
    const firstLine = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    throw new BadEncoding("rawTransaction", `is not a signed transaction: ${firstLine}`);
  }
}

/** EIP-4844: GAS_PER_BLOB, for each hash that is named. */
function blobGas(parsed: Parsed): bigint {
  const hashes = "blobVersionedHashes" in parsed ? (parsed.blobVersionedHashes ?? []) : [];
  return BigInt(hashes.length) * 131_072n;
}

/** The network's name for it is the hash of what is in the block, and blobs are not. Null: there are none. */
function withoutBlobs(parsed: Parsed): Hex | null {
  const { r, s, yParity } = parsed as { readonly [K in keyof Signature]?: Signature[K] };
  if (!("sidecars" in parsed) || parsed.sidecars === undefined) return null;
  const bare = { ...parsed, r: undefined, s: undefined, v: undefined, yParity: undefined, sidecars: undefined };
  return serializeTransaction(bare as Parameters<typeof serializeTransaction>[0], { r, s, yParity } as Signature);
}

/** Blobs travel beside what is signed, not in it. */
function recoverSigner(parsed: Parsed): Promise<string> {
  const { r, s, v, yParity } = parsed as { readonly [K in keyof Signature]?: Signature[K] };
  if (r === undefined || s === undefined) throw new Error("it is not signed");
  const bare = { ...parsed, r: undefined, s: undefined, v: undefined, yParity: undefined, sidecars: undefined };
  const hash = keccak256(serializeTransaction(bare as Parameters<typeof serializeTransaction>[0]));
  return recoverAddress({ hash, signature: { r, s, v, yParity } as Signature });
}

function lowered(address: string | null): Address | null {
  return address === null ? null : (address.toLowerCase() as Address);
}

function feesOf(parsed: Parsed): Fees {
  if (parsed.maxFeePerGas !== undefined) {
    return {
      type: "eip1559",
      maxFeePerGas: parsed.maxFeePerGas,
      maxPriorityFeePerGas: parsed.maxPriorityFeePerGas ?? 0n,
    };
  }
  return { type: parsed.type === "eip2930" ? "eip2930" : "legacy", gasPrice: parsed.gasPrice ?? 0n };
}
