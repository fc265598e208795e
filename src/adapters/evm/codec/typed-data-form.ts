import { domainFields, type TypedData, type TypedDomain, type TypedField } from "../../../domain/messages/message.ts";

/** Typed data in the format of `eth_signTypedData_v4`, for JSON: integers are decimal text. */
export function typedDataForm({ domain, types, primaryType, value }: TypedData) {
  return {
    types: { EIP712Domain: domainFields(domain) as readonly TypedField[], ...types },
    domain: domainForm(domain),
    primaryType,
    message: value,
  };
}

/**
 * A domain whose chain id is a number, because viem and web3j take no text there; only an id that a number cannot hold
 * stays text.
 */
function domainForm(domain: TypedDomain) {
  if (domain.chainId === undefined) return domain;
  const number = Number(domain.chainId);
  return { ...domain, chainId: Number.isSafeInteger(number) ? number : domain.chainId };
}
