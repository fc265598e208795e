/**
 * Keys behind an account of viem, passed to the library as an object: a key service or a wallet with an adapter for
 * viem. Its answers are checked like those of any other key holder.
 */
import type { LocalAccount, TransactionSerializable } from "viem";
import type { Address } from "../../../../domain/lane.ts";
import type { UnsignedTransaction } from "../../../../domain/transaction/transaction.ts";
import { type RemoteKey, remoteKey } from "./key-service.ts";
import { checked } from "./signed-answer.ts";

/** An account of viem that signs transactions itself: `privateKeyToAccount`, `mnemonicToAccount`, `toAccount`. */
export type SigningAccount = Pick<LocalAccount, "address" | "signTransaction">;

export function viemAccountKey(account: SigningAccount): RemoteKey {
  const address = account.address.toLowerCase() as Address;
  return remoteKey(address, async (transaction) =>
    checked(await account.signTransaction(serializable(transaction)), address, transaction, `the account ${address}`),
  );
}

function serializable(transaction: UnsignedTransaction): TransactionSerializable {
  const { chainId, nonce, to, value, data, gas, fees, accessList } = transaction;
  const common = { chainId, nonce, value, data, gas, ...(to !== null && { to }) };
  return { ...common, ...fees, ...(fees.type !== "legacy" && { accessList }) } as TransactionSerializable;
}
