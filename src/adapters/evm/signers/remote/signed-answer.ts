/**
 * Checks a transaction that a key holder outside this process signed. Its answers are not trusted: a compromised one
 * could sign any receiver.
 */
import type { Address, Hex } from "../../../../domain/lane.ts";
import type { UnsignedTransaction } from "../../../../domain/transaction/transaction.ts";
import { decodeTransaction, parsePayload } from "../../codec/decode-transaction.ts";
import { HALF_ORDER, isSignedBy, wrongAnswer } from "../recovery.ts";
import { type EthereumSignature, encodeTransaction, hashToSign, signTransaction } from "../worker/serialise.js";

/** The signed transaction, if its bytes match the request and its signature matches the account. */
export async function checked(answer: unknown, address: Address, transaction: UnsignedTransaction, label: string) {
  const isHex = typeof answer === "string" && /^0x(?:[\da-f]{2})+$/i.test(answer);
  if (!isHex) throw wrongAnswer(`${label} answered with something that is no signed transaction`);
  const rawTransaction = answer.toLowerCase() as Hex;
  const encoded = encodeTransaction(transaction);
  const signature = signatureOf(rawTransaction);
  const signed = signature && (await signTransaction(encoded, () => signature));
  if (signature === null || signed?.rawTransaction !== rawTransaction) {
    const how = await difference(rawTransaction, transaction);
    throw wrongAnswer(`${label} signed another transaction than it was asked to: ${how}`);
  }
  if (BigInt(`0x${signature.s}`) > HALF_ORDER)
    throw wrongAnswer(`${label} made a signature that no node takes (EIP-2: its s is too high)`);
  if (!(await isSignedBy(address, hashToSign(encoded), signature)))
    throw wrongAnswer(`${label} signed with another key than that of ${address}`);
  return signed;
}

/** Reads the signature of a transaction; null if the transaction is not signed. */
function signatureOf(rawTransaction: Hex): EthereumSignature | null {
  try {
    const { signature } = parsePayload(rawTransaction);
    if (signature === null) return null;
    // The legacy v is 27 or 28, or 35 and above (EIP-155). Whether it is odd or even gives the parity.
    const { r, s, v = 0n, yParity = Number((v + 1n) % 2n) } = signature;
    return { r: digits(r), s: digits(s), yParity: yParity === 0 ? 0 : 1 };
  } catch {
    return null;
  }
}

const digits = (hex: Hex) => hex.slice(2).padStart(64, "0");

const FIELDS = ["chainId", "nonce", "to", "value", "data", "gas", "fees", "accessList"] as const;

/** Lists the fields of a signed transaction that differ from the request, for the error message. */
async function difference(rawTransaction: Hex, asked: UnsignedTransaction) {
  const decoded = await decodeTransaction(rawTransaction).catch(() => null);
  if (decoded === null) return "it cannot be read";
  const text = (value: unknown) =>
    JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? `${each}` : each)).toLowerCase();
  const other = FIELDS.filter((field) => text(decoded.unsigned[field]) !== text(asked[field]));
  return other.length === 0
    ? "its encoding differs"
    : `${other.join(", ")} ${other.length === 1 ? "differs" : "differ"}`;
}
