import { type TSchemaOptions, Type } from "typebox";
import { POOL_NAME } from "../../domain/nonces/pool.ts";
import { count, text } from "./shapes.ts";

/** Values shared by all examples of the API: a payment for order 42, from the first account of development chains. */
export const STORY = {
  signer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
  recipient: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  txId: "019a4b7e-8a90-7cc1-b1d2-3e4f5a6b7c8d",
  txHash: "0x6f4c9d2a1b8e3f70c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c",
};

/** A string of hex digits, with the type that wallet libraries use for addresses, hashes and bytes. */
export const hex = (keywords: TSchemaOptions & { readonly pattern: string }) =>
  Type.Unsafe<`0x${string}`>({ type: "string", ...keywords });

export const Address = hex({
  pattern: "^0x[0-9a-fA-F]{40}$",
  description: "Account address; EIP-55 in answers, any casing without a wrong checksum in requests.",
  examples: [STORY.signer],
});

export const Hash = hex({
  pattern: "^0x[0-9a-f]{64}$",
  description: "32 bytes, lower-case hex.",
  examples: [STORY.txHash],
});

export const Hex = hex({ pattern: "^0x([0-9a-f]{2})*$", description: "Bytes, lower-case hex.", examples: ["0x"] });

/** Schemas of value formats that are allowed only in requests, not in responses. */
export const HexInput = hex({ pattern: "^0x([0-9a-fA-F]{2})*$", description: "Bytes, hex." });

const decimal = (example: string) =>
  Type.Unsafe<`${bigint}`>({
    type: "string",
    pattern: "^(0|[1-9][0-9]*)$",
    description: "Unsigned integer in decimal digits; amounts are in wei.",
    examples: [example],
  });

/** Numbers in responses that may exceed the precision of a double, as decimal strings. */
export const Decimal = decimal("1000000000000000");
export const SignedDecimal = Type.Unsafe<`${bigint}`>({
  type: "string",
  pattern: "^(0|-?[1-9][0-9]*)$",
  description: "Integer in decimal digits; amounts are in wei.",
  examples: ["1000000000000000"],
});
export const Gas = decimal("21000");
export const Price = decimal("2000000000");

const quantity = {
  anyOf: [
    { type: "string", pattern: "^(0|[1-9][0-9]*|0x[0-9a-fA-F]+)$" },
    { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  ],
  description: "Decimal string, 0x hex, or an integer up to 2^53 - 1.",
};

/**
 * Amounts of wei in requests. The types have no `number`, although JSON may carry one: `1e18` is more than a double
 * holds exactly. The SDK writes a bigint as decimal digits.
 */
export const Quantity = Type.Unsafe<bigint | `${bigint}`>({ ...quantity, examples: ["1000000000000000"] });

/** Amounts of gas in requests: no amount of gas exceeds the precision of a double. */
export const GasLimit = Type.Unsafe<number | bigint | `${bigint}`>({ ...quantity, examples: ["21000"] });

export const Timestamp = Type.String({
  format: "date-time",
  description: "ISO 8601, UTC.",
  examples: ["2026-11-02T09:30:00.000Z"],
});

export const ChainId = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "EIP-155 chain id.",
  examples: [31337],
});

export const Nonce = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "Nonce of the signer's account.",
  examples: [7],
});

export const TxId = Type.String({
  format: "uuid",
  description: "Fencepost's own id of a transaction (UUID version 7).",
  examples: [STORY.txId],
});

export const Owner = text("The name of the API key that asked for it; null where no key is asked for.", "checkout");

export const RequestId = Type.String({
  minLength: 1,
  maxLength: 255,
  description: "The caller's own id: printable, one transaction per lane, and per pool.",
  examples: ["order-42"],
});

export const BlockNumber = count("", 1204);
export const NodeId = text("", "node-a");
export const InstanceId = text("", "019a4b7d-0000-7000-8000-000000000001");
export const Version = text("", "0.1.0");

/** The cursor that marks where a page of results begins. */
export const After = Type.String({ minLength: 1, maxLength: 512, description: "`next` of the page before." });

export const PoolName = Type.String({ pattern: POOL_NAME.source, description: "A pool of the configuration." });
