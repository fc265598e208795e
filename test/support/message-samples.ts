import { getAddress } from "viem";
import { createCodec } from "../../src/adapters/evm/codec/codec.ts";
import type { Address } from "../../src/domain/lane.ts";
import type { Message } from "../../src/domain/messages/message.ts";
import { type AskedTypedData, parsePersonal, parseTypedData } from "../../src/domain/messages/parse-message.ts";
import type { AskedSignature } from "../../src/domain/messages/record.ts";
import { nextUuid } from "./lane-samples.ts";

const codec = createCodec();

export const TOKEN = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48";
export const SPENDER = "0x000000000022d473030f116ddee9f6b43ac78ba3";
export const PERMIT_TYPE = "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)";
/** A deadline that no test's clock reaches. */
export const FAR = "4000000000";

const PERMIT_FIELDS = [
  { name: "owner", type: "address" },
  { name: "spender", type: "address" },
  { name: "value", type: "uint256" },
  { name: "nonce", type: "uint256" },
  { name: "deadline", type: "uint256" },
];

export interface PermitParts {
  readonly value?: unknown;
  readonly spender?: unknown;
  readonly nonce?: unknown;
  readonly deadline?: unknown;
  readonly domain?: Readonly<Record<string, unknown>>;
  readonly chainId?: number;
}

/** Typed data of an ERC-2612 permit, as a wallet sends it. */
export function aPermit(owner: Address, parts: PermitParts = {}): AskedTypedData {
  const { value = "100", spender = SPENDER, nonce = "0", deadline = FAR, chainId = 1 } = parts;
  return {
    domain: { name: "USD Coin", version: "2", chainId, verifyingContract: TOKEN, ...parts.domain },
    types: { Permit: PERMIT_FIELDS },
    primaryType: "Permit",
    message: { owner, spender, value, nonce, deadline },
  };
}

/** The policy's rule for `aPermit`. */
export function permitRule(parts: object = {}, chainId = 1) {
  return {
    name: "usdc",
    domain: { name: "USD Coin", version: "2", chainId, verifyingContract: TOKEN },
    type: PERMIT_TYPE,
    fields: { spender: { in: [SPENDER] } },
    ...parts,
  };
}

export const permitPolicy = (parts: object = {}, chainId = 1) => ({
  messages: { typedData: [permitRule(parts, chainId)] },
});

export const GREETING_RULE = { name: "greeting", prefix: "Log in to example.com: ", maxLength: 80 };

/** A request for a signature, with its digest, as the lane's owner commits it. */
export function asked(message: Message, parts: Partial<AskedSignature> = {}): AskedSignature {
  const signatureId = nextUuid();
  return { signatureId, requestId: signatureId, owner: null, message, digest: codec.messageDigest(message), ...parts };
}

export const permitOf = (owner: Address, parts: PermitParts = {}) => parseTypedData(aPermit(owner, parts), codec);

export const greeting = (rest = "nonce 1") => parsePersonal(`Log in to example.com: ${rest}`);

/** A sign-in (ERC-4361) of this signer at example.com. */
export const signInOf = (signer: Address, chainId = 1) =>
  parsePersonal(
    `example.com wants you to sign in with your Ethereum account:\n${getAddress(signer)}\n\n\nURI: https://example.com/login\n` +
      `Version: 1\nChain ID: ${chainId}\nNonce: 8fd2a1bc\nIssued At: 2026-11-02T10:00:00Z`,
  );
