/**
 * Keys behind an account of viem, passed to the library as an object: a key service or a wallet with an adapter for
 * viem. Its answers are checked like those of any other key holder.
 */
import type { Address } from "../../../../domain/lane.ts";
import {
  elementOf,
  fieldsOf,
  type Message,
  type StructValue,
  type TypedValue,
  type Types,
} from "../../../../domain/messages/message.ts";
import type { UnsignedTransaction } from "../../../../domain/transaction/transaction.ts";
import { SigningRefused } from "../../../../ports/signer.ts";
import { typedDataForm } from "../../codec/typed-data-form.ts";
import { provenSignature } from "../recovery.ts";
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
  /** Signs a personal message. If absent, the account signs none. */
  readonly signMessage?: (message: never) => Promise<`0x${string}`>;
  /** Signs typed data (EIP-712). If absent, the account signs none. */
  readonly signTypedData?: (typedData: never) => Promise<`0x${string}`>;
}

export function viemAccountKey(account: SigningAccount): RemoteKey {
  const address = account.address.toLowerCase() as Address;
  const label = `the account ${address}`;
  return remoteKey(address, {
    transaction: async (transaction) => {
      const signed = await account.signTransaction(serializable(transaction) as never);
      return checked(signed, address, transaction, label);
    },
    message: async ({ message, digest }) =>
      provenSignature(await signMessage(account, message, label), { address, digest, label }),
  });
}

async function signMessage(account: SigningAccount, message: Message, label: string): Promise<unknown> {
  if (message.kind === "personal") {
    if (account.signMessage === undefined) throw new SigningRefused(0, `${label} has no signMessage`);
    return account.signMessage({ message: { raw: message.bytes } } as never);
  }
  if (account.signTypedData === undefined) throw new SigningRefused(0, `${label} has no signTypedData`);
  const form = typedDataForm(message);
  const value = withIntegers(message.types, message.primaryType, message.value);
  return account.signTypedData({ ...form, message: value } as never);
}

/** A value of typed data with its integers as bigints, which viem's types ask for. */
function withIntegers(types: Types, type: string, value: TypedValue): unknown {
  const array = elementOf(type);
  if (array !== null) return (value as readonly TypedValue[]).map((each) => withIntegers(types, array.element, each));
  if (!Object.hasOwn(types, type)) return /^u?int/.test(type) ? BigInt(value as string) : value;
  const members = value as StructValue;
  return Object.fromEntries(
    fieldsOf(types, type).map((field) => [field.name, withIntegers(types, field.type, members[field.name] ?? "")]),
  );
}

/** The transaction in the form of viem's `TransactionSerializable`. */
function serializable(transaction: UnsignedTransaction) {
  const { chainId, nonce, to, value, data, gas, fees, accessList } = transaction;
  const common = { chainId, nonce, value, data, gas, ...(to !== null && { to }) };
  return { ...common, ...fees, ...(fees.type !== "legacy" && { accessList }) };
}
