import { invalidArgument } from "./error-classes.ts";

/** Bytes as `0x` and an even number of hex digits: the type that viem and other wallet libraries use. */
export type Hex = `0x${string}`;
/** Address of an account: `0x` and 40 hex digits. */
export type Address = Hex;
/** Hash of a transaction or block: `0x` and 64 hex digits. */
export type Hash = Hex;

/**
 * Checks that a text from outside (an environment variable, a form, a database row) is an address. The node checks the
 * EIP-55 checksum.
 *
 * @param text The text to check.
 * @param field Name of the field in the error, such as `"payout.to"`.
 * @throws InvalidRequestError with the field's name as its `path`. The error never quotes the text.
 * @example
 * await fencepost.send({ signer, payload: { to: asAddress(form.recipient, "recipient"), value: 1n } });
 */
export function asAddress(text: unknown, field = "address"): Address {
  return checked(text, field, /^0x[0-9a-f]{40}$/i, "an address") as Hex;
}

/**
 * Checks that a text from outside is `0x` and an even number of hex digits: call data, a hash, a signed transaction, a
 * private key.
 *
 * @param text The text to check.
 * @param field Name of the field in the error, such as `"PRIVATE_KEY"`.
 * @throws InvalidRequestError with the field's name as its `path`. The error never quotes the text, which may be a key.
 * @example
 * const signers = [asHex(process.env.PRIVATE_KEY, "PRIVATE_KEY")];
 */
export function asHex(text: unknown, field = "hex"): Hex {
  return checked(text, field, /^0x([0-9a-f]{2})*$/i, "hex bytes") as Hex;
}

/**
 * Checks that a text from outside is a whole number of wei: decimal digits, or `0x` and hex digits. `1.5` and `1e18` are
 * refused.
 *
 * @param text The text to check.
 * @param field Name of the field in the error, such as `"amount"`.
 * @throws InvalidRequestError with the field's name as its `path`.
 * @example
 * await fencepost.send({ signer, payload: { to, value: asWei(form.amount, "amount") } });
 */
export function asWei(text: unknown, field = "wei"): bigint {
  return BigInt(checked(text, field, /^(\d+|0x[0-9a-f]+)$/i, "whole wei"));
}

export function checked(text: unknown, field: string, pattern: RegExp, what: string): string {
  if (typeof text === "string" && pattern.test(text)) return text;
  throw invalidArgument(field, `must be ${what}`);
}
