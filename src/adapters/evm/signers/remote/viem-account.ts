/**
 * Keys behind an account of viem, passed to the library as an object: a key service or a wallet with an adapter for
 * viem. Its answers are checked like those of any other key holder.
 */
import type { Address } from "../../../../domain/lane.ts";
import type { UnsignedTransaction } from "../../../../domain/transaction/transaction.ts";
import { type RemoteKey, remoteKey } from "./key-service.ts";
import { checked } from "./signed-answer.ts";

/**
 * An account of viem that signs transactions itself: `privateKeyToAccount`, `mnemonicToAccount`, `toAccount`. It is not
 * declared by viem's types: the library's declarations must compile where viem, an optional package, is missing.
 */
export interface SigningAccount {
  /** Address of the account. */
  readonly address: `0x${string}`;
  /** Signs a transaction of viem (`TransactionSerializable`), and resolves with its bytes. */
  readonly signTransaction: (transaction: never) => Promise<`0x${string}`>;
}

export function viemAccountKey(account: SigningAccount): RemoteKey {
  const address = account.address.toLowerCase() as Address;
  return remoteKey(address, async (transaction) => {
    const signed = await account.signTransaction(serializable(transaction) as never);
    return checked(signed, address, transaction, `the account ${address}`);
  });
}

/** The transaction in the form of viem's `TransactionSerializable`. */
function serializable(transaction: UnsignedTransaction) {
  const { chainId, nonce, to, value, data, gas, fees, accessList } = transaction;
  const common = { chainId, nonce, value, data, gas, ...(to !== null && { to }) };
  return { ...common, ...fees, ...(fees.type !== "legacy" && { accessList }) };
}
