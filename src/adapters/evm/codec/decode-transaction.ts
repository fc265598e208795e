import { keccak256, numberToHex, parseTransaction, recoverAddress, serializeTransaction } from "viem/utils";
import type { Address, Hash, Hex } from "../../../domain/lane.ts";
import { messageOf } from "../../../domain/text/thrown.ts";
import type { Fees } from "../../../domain/transaction/fees.ts";
import type { AccessListEntry, UnsignedTransaction } from "../../../domain/transaction/transaction.ts";
import { BadEncoding, type DecodedTransaction, type TransactionObject } from "../../../ports/codec.ts";

type Parsed = ReturnType<typeof parseTransaction>;
type Signature = Exclude<Parameters<typeof recoverAddress>[0]["signature"], string | Uint8Array>;
type Bare = Parameters<typeof serializeTransaction>[0];

const UNSIGNED = { r: undefined, s: undefined, v: undefined, yParity: undefined, sidecars: undefined };
/** Gas per blob (EIP-4844, GAS_PER_BLOB). */
const GAS_PER_BLOB = 131_072n;

/** Parses a transaction payload with viem; includes the signature's fields if the payload is signed. */
export function parsePayload(rawTransaction: Hex) {
  const parsed: Parsed = parseTransaction(rawTransaction as Parameters<typeof parseTransaction>[0]);
  const { r, s, v, yParity } = parsed as Partial<Signature>;
  return { parsed, signature: r === undefined || s === undefined ? null : ({ r, s, v, yParity } as Signature) };
}

/** Decodes a signed payload. Throws `BadEncoding` if viem refuses it. */
export async function decodeTransaction(rawTransaction: Hex): Promise<DecodedTransaction> {
  try {
    const { parsed, signature } = parsePayload(rawTransaction);
    const { chainId, maxFeePerBlobGas, blobVersionedHashes, type = "legacy" }: Parsed = parsed;
    if (chainId === undefined) throw new Error("the transaction has no chain id (EIP-155)");
    if (signature === null) throw new Error("the transaction is not signed");
    // Remove the blob sidecars: they are not part of the signed bytes (EIP-4844), and the transaction hash is computed
    // without them.
    const bare = { ...parsed, ...UNSIGNED } as Bare;
    const hasBlobs = "sidecars" in parsed && parsed.sidecars !== undefined;
    const named = hasBlobs ? serializeTransaction(bare, { ...signature, v: undefined } as Signature) : rawTransaction;
    const signer = await recoverAddress({ hash: keccak256(serializeTransaction(bare)), signature });
    const { nonce = 0, to, data = "0x", value = 0n, gas = 0n, accessList = [] } = parsed;
    return {
      envelope: type,
      unsigned: {
        ...{ chainId, nonce, to: (to?.toLowerCase() ?? null) as Address | null, data, value, gas },
        fees: feesOf(parsed),
        accessList: accessList as readonly AccessListEntry[],
      },
      signer: signer.toLowerCase() as Address,
      txHash: keccak256(named) as Hash,
      ...(maxFeePerBlobGas === undefined
        ? {}
        : { blobFeeCap: maxFeePerBlobGas, blobGas: BigInt(blobVersionedHashes?.length ?? 0) * GAS_PER_BLOB }),
    };
  } catch (error) {
    throw new BadEncoding("rawTransaction", `is not a signed transaction: ${messageOf(error).split("\n")[0]}`);
  }
}

function feesOf({ type, maxFeePerGas, maxPriorityFeePerGas = 0n, gasPrice = 0n }: Parsed): Fees {
  if (maxFeePerGas !== undefined) return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas };
  return { type: type === "eip2930" ? type : "legacy", gasPrice };
}

/** Transaction types of EIP-2718. */
export const TYPES = { legacy: "0x0", eip2930: "0x1", eip1559: "0x2", eip4844: "0x3", eip7702: "0x4" } as const;

/**
 * Returns a pending transaction in geth's JSON format. Clients require even fields that they do not use: ethers refuses
 * an object without a signature, web3.py one without `input`.
 */
export async function transactionObject(rawTransaction: Hex): Promise<TransactionObject> {
  return viewOf(rawTransaction, await decodeTransaction(rawTransaction));
}

/** Formats an already decoded transaction in geth's JSON format. */
export function viewOf(rawTransaction: Hex, decoded: DecodedTransaction): TransactionObject {
  const { envelope, unsigned, signer, txHash } = decoded;
  const { to, data, fees, accessList } = unsigned;
  const { parsed, signature } = parsePayload(rawTransaction);
  const { maxFeePerBlobGas, blobVersionedHashes, authorizationList }: Parsed = parsed;
  const { r = "0x0", s = "0x0", v = 0n, yParity = 0 } = signature ?? {};
  return {
    ...{ hash: txHash, type: TYPES[envelope], from: signer, to, input: data },
    ...amountsInHex(unsigned),
    gasPrice: numberToHex(fees.type === "eip1559" ? fees.maxFeePerGas : fees.gasPrice),
    ...(envelope === "legacy" ? {} : { accessList }),
    // Only blob transactions (EIP-4844) and delegations (EIP-7702) have the following fields.
    ...(maxFeePerBlobGas === undefined ? {} : { ...inHex({ maxFeePerBlobGas }), blobVersionedHashes }),
    ...(authorizationList === undefined ? {} : { authorizationList: authorizationList.map(inHex) }),
    // Format the signature's r and s as JSON-RPC quantities, which have no leading zeros.
    ...inHex({ r: BigInt(r), s: BigInt(s), ...(envelope === "legacy" ? { v } : { v: yParity, yParity }) }),
    ...{ blockHash: null, blockNumber: null, transactionIndex: null },
  };
}

/** Formats the amounts of a transaction (chain id, nonce, value, gas, prices) as JSON-RPC hex quantities. */
export function amountsInHex({ chainId, nonce, value, gas, fees }: UnsignedTransaction) {
  const { type: _, ...prices } = fees;
  return inHex({ chainId, nonce, value, gas, ...prices });
}

function inHex(fields: object): Readonly<Record<string, unknown>> {
  const written = ([name, value]: [string, unknown]) =>
    [name, typeof value === "number" || typeof value === "bigint" ? numberToHex(value) : value] as const;
  return Object.fromEntries(Object.entries(fields).map(written));
}
