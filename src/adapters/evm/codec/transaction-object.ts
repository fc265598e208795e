import { parseTransaction, toHex } from "viem/utils";
import type { Hex } from "../../../domain/lane.ts";
import type { DecodedTransaction, TransactionObject } from "../../../ports/codec.ts";
import { decodeTransaction } from "./decode-transaction.ts";

type Parsed = ReturnType<typeof parseTransaction>;

/** Transaction types of EIP-2718. */
const TYPES: Readonly<Record<DecodedTransaction["envelope"], Hex>> = {
  legacy: "0x0",
  eip2930: "0x1",
  eip1559: "0x2",
  eip4844: "0x3",
  eip7702: "0x4",
};

/**
 * A pending transaction in geth's JSON format. Clients require fields that they do not use: ethers refuses an object
 * without a signature, web3.py one without `input`.
 */
export async function transactionObject(rawTransaction: Hex): Promise<TransactionObject> {
  return viewOf(rawTransaction, await decodeTransaction(rawTransaction));
}

/** The view of bytes that were decoded already. */
export function viewOf(rawTransaction: Hex, { envelope, unsigned, signer, txHash }: DecodedTransaction) {
  const parsed = parseTransaction(rawTransaction as Parameters<typeof parseTransaction>[0]);
  const { chainId, nonce, to, data, value, gas, fees, accessList } = unsigned;
  return {
    ...{ hash: txHash, type: TYPES[envelope], chainId: toHex(chainId), nonce: toHex(nonce), from: signer, to },
    ...{ value: toHex(value), gas: toHex(gas), input: data },
    ...(fees.type === "eip1559"
      ? { maxFeePerGas: toHex(fees.maxFeePerGas), maxPriorityFeePerGas: toHex(fees.maxPriorityFeePerGas) }
      : {}),
    gasPrice: toHex(fees.type === "eip1559" ? fees.maxFeePerGas : fees.gasPrice),
    ...(envelope === "legacy" ? {} : { accessList }),
    ...besides(parsed),
    ...signatureOf(parsed, envelope),
    ...{ blockHash: null, blockNumber: null, transactionIndex: null },
  };
}

/** Fields that only blob (EIP-4844) and delegation (EIP-7702) transactions have. */
function besides(parsed: Parsed) {
  const { maxFeePerBlobGas, blobVersionedHashes, authorizationList }: Parsed = parsed;
  return {
    ...(maxFeePerBlobGas === undefined ? {} : { maxFeePerBlobGas: toHex(maxFeePerBlobGas), blobVersionedHashes }),
    ...(authorizationList === undefined ? {} : { authorizationList: authorizationList.map(inHex) }),
  };
}

function inHex(fields: object) {
  const written = ([name, value]: [string, unknown]) =>
    [name, typeof value === "number" || typeof value === "bigint" ? toHex(value) : value] as const;
  return Object.fromEntries(Object.entries(fields).map(written));
}

function signatureOf(parsed: Parsed, envelope: DecodedTransaction["envelope"]) {
  const { r, s, v, yParity } = parsed as Readonly<Partial<{ r: Hex; s: Hex; v: bigint; yParity: number }>>;
  // r and s are quantities in JSON-RPC: they have no leading zeros.
  const signature = { r: toHex(BigInt(r ?? "0x0")), s: toHex(BigInt(s ?? "0x0")) };
  if (envelope === "legacy") return { ...signature, v: toHex(v ?? 0n) };
  const parity = toHex(yParity ?? 0);
  return { ...signature, v: parity, yParity: parity };
}
