import { keccak256 } from "viem/utils";
import type { Hash, Hex } from "../../../domain/lane.ts";
import {
  domainFields,
  elementOf,
  encodeType,
  fieldsOf,
  type Message,
  type StructValue,
  type TypedData,
  type TypedValue,
  type Types,
} from "../../../domain/messages/message.ts";

/**
 * The digest that a key signs for a message. The message is in normal form, so nothing is parsed or coerced here. The
 * type of each struct is hashed once: values are as large as the request, but types may refer to each other along many
 * paths.
 */
export function messageDigest(message: Message): Hash {
  return message.kind === "personal" ? personalDigest(message.bytes) : typedDataDigest(message);
}

/** EIP-191, version 0x45: the prefix keeps the bytes from being a transaction or a digest of typed data. */
function personalDigest(bytes: Hex): Hash {
  const content = Buffer.from(bytes.slice(2), "hex");
  const prefix = Buffer.from(`\x19Ethereum Signed Message:\n${content.length}`);
  return keccak256(Buffer.concat([prefix, content]));
}

const DOMAIN = "EIP712Domain";

/** EIP-712: 0x1901, the hash of the domain, and the hash of the message. */
function typedDataDigest({ domain, types, primaryType, value }: TypedData): Hash {
  const own = hashing({ [DOMAIN]: domainFields(domain) });
  const separator = own.structHash(DOMAIN, domain as StructValue);
  return keccak256(
    Buffer.concat([Buffer.from([0x19, 0x01]), separator, hashing(types).structHash(primaryType, value)]),
  );
}

function hashing(types: Types) {
  const typeHashes = new Map<string, Buffer>();

  function typeHash(name: string): Buffer {
    const known = typeHashes.get(name);
    if (known !== undefined) return known;
    const made = hash(Buffer.from(encodeType(types, name)));
    typeHashes.set(name, made);
    return made;
  }

  function structHash(name: string, value: StructValue): Buffer {
    const members = fieldsOf(types, name).map((field) => encode(field.type, memberOf(value, field.name)));
    return hash(Buffer.concat([typeHash(name), ...members]));
  }

  /** The 32 bytes that stand for a value in its struct. */
  function encode(type: string, value: TypedValue): Buffer {
    const array = elementOf(type);
    if (array !== null)
      return hash(Buffer.concat((value as readonly TypedValue[]).map((each) => encode(array.element, each))));
    if (Object.hasOwn(types, type)) return structHash(type, value as StructValue);
    if (type === "string") return hash(Buffer.from(value as string));
    if (type === "bytes") return hash(bytesOf(value));
    if (type === "bool") return word(value === true ? 1n : 0n);
    if (type === "address") return Buffer.concat([Buffer.alloc(12), bytesOf(value)]);
    if (type.startsWith("bytes")) return Buffer.concat([bytesOf(value), Buffer.alloc(32)], 32);
    return word(BigInt(value as string));
  }

  return { structHash };
}

function memberOf(value: StructValue, name: string): TypedValue {
  const member = Object.hasOwn(value, name) ? value[name] : undefined;
  if (member === undefined) throw new TypeError(`the message has no member ${name}`);
  return member;
}

const hash = (bytes: Uint8Array) => Buffer.from(keccak256(bytes, "bytes"));

const bytesOf = (value: TypedValue) => Buffer.from((value as string).slice(2), "hex");

/** An integer in 32 bytes; a negative one in two's complement. */
function word(value: bigint): Buffer {
  return Buffer.from(BigInt.asUintN(256, value).toString(16).padStart(64, "0"), "hex");
}
