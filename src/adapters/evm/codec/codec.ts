import {
  concatHex,
  encodeAbiParameters,
  getAddress,
  getContractAddress,
  parseAbiItem,
  toFunctionSelector,
} from "viem/utils";
import type { Address, Hex } from "../../../domain/lane.ts";
import { nearestName } from "../../../domain/text/near-names.ts";
import { BadEncoding, type Callee, type Codec } from "../../../ports/codec.ts";
import { type AbiParameter, parseAddress, toAbiValue } from "./abi-values.ts";
import { readWords } from "./abi-words.ts";
import { decodeTransaction, transactionObject } from "./decode-transaction.ts";
import { decodeError } from "./error-texts.ts";
import { messageDigest } from "./message-digest.ts";
import { parseSignatures } from "./parse-signatures.ts";

/** Limits on signatures from callers: viem's parser must not be given text whose parsing takes seconds. */
const LONGEST_SIGNATURE = 2_000;
const MOST_PARENTHESES = 100;
const DEEPEST_TUPLE = 16;
const SIGNATURES_KEPT = 500;

export function createCodec(): Codec {
  const signatures = new Map<string, AbiFunction>();
  const bySignature = (text: string): AbiFunction => {
    const known = signatures.get(text);
    if (known !== undefined) return known;
    const parsed = parseSignature(text);
    // Clear the cache of signatures when it is full. Callers use few functions; a caller that invents signatures can
    // only empty the cache.
    if (signatures.size >= SIGNATURES_KEPT) signatures.clear();
    signatures.set(text, parsed);
    return parsed;
  };
  return {
    parseAddress: (text) => parseAddress(text),
    // No cache is needed here: viem caches a few thousand checksums, so a busy signer's checksum is computed only once.
    checksum: (address) => getAddress(address),
    contractAddress: (from, nonce) => getContractAddress({ from, nonce: BigInt(nonce) }).toLowerCase() as Address,
    encodeCall: (callee, args) =>
      typeof callee === "string"
        ? encodeFunction(bySignature(callee), args)
        : encodeFitting(candidates(callee, bySignature), args),
    functions: (callee) => (typeof callee === "string" ? [bySignature(callee)] : candidates(callee, bySignature)),
    encodeDeploy,
    decodeError,
    readWords,
    decodeTransaction,
    transactionObject,
    messageDigest,
  };
}

type AbiFunction = ReturnType<typeof readFunction>;

function parseSignature(text: string): AbiFunction {
  if (text.length > LONGEST_SIGNATURE) {
    throw new BadEncoding("function", `is longer than ${LONGEST_SIGNATURE} characters`);
  }
  if (text.split("(").length > MOST_PARENTHESES) throw new BadEncoding("function", "has too many tuples");
  const signature = text.trim();
  const parse = () => parseAbiItem(signature.startsWith("function ") ? signature : `function ${signature}`);
  const item = foreign("function", "is not a function signature", parse, signature);
  return readFunction(readItem(item));
}

function encodeFunction({ selector, inputs }: AbiFunction, args: readonly unknown[]) {
  return concatHex([selector, encodeArguments(inputs, args)]);
}

/**
 * Finds the ABI functions that the caller may mean. Only functions with the name that the caller gave are validated: a
 * library's ABI may contain others whose types cannot be called from outside.
 */
function candidates(callee: Exclude<Callee, string>, bySignature: (text: string) => AbiFunction) {
  if (!("abi" in callee)) return functionsIn(callee).map(readFunction);
  const { abi, function: named } = callee;
  const wanted = named.includes("(") ? bySignature(named) : null;
  const functions = inAbi(() => functionsIn(abi));
  const found = functions.filter(({ name }) => name === (wanted?.name ?? named));
  const fitting = inAbi(() => found.map(readFunction)).filter(
    ({ selector }) => wanted === null || selector === wanted.selector,
  );
  if (fitting.length > 0) return fitting;
  const names = functions.flatMap(({ name }) => (typeof name === "string" ? name : []));
  const there = names.length === 0 ? "it has no function" : `it has ${listed([...new Set(names)])}`;
  throw new BadEncoding("function", `abi has no function named ${named.slice(0, 200)}; ${there}`);
}

function functionsIn(abi: readonly unknown[]): readonly AbiItem[] {
  return readAbi(abi).filter((item) => item.type === "function");
}

/** Reports a mistake in the caller's `abi` under that field's name. */
function inAbi<T>(read: () => T) {
  try {
    return read();
  } catch (error) {
    throw error instanceof BadEncoding ? new BadEncoding("abi", error.message) : error;
  }
}

const MOST_LISTED = 8;

function listed(names: readonly string[]) {
  const more = names.length - MOST_LISTED;
  return `${names.slice(0, MOST_LISTED).join(", ").slice(0, 400)}${more > 0 ? ` and ${more} more` : ""}`;
}

const inWords = ({ name, inputs }: AbiFunction) => `${name}(${inputs.map(({ type }) => type).join(",")})`;

/**
 * Encodes the call with the one function that accepts these arguments. If only one function has this number of
 * parameters, its error is thrown, because it is the most specific.
 */
function encodeFitting(functions: readonly AbiFunction[], args: readonly unknown[]) {
  const [only, ...more] =
    functions.length === 1 ? functions : functions.filter(({ inputs }) => inputs.length === args.length);
  if (functions.length === 0) throw new BadEncoding("function", "has no function in its ABI");
  if (only !== undefined && more.length === 0) return encodeFunction(only, args);
  const fitting = functions.flatMap((each) => {
    try {
      return [{ each, encoded: encodeFunction(each, args) }];
    } catch (error) {
      if (error instanceof BadEncoding) return [];
      throw error;
    }
  });
  const [found, another] = fitting;
  if (found === undefined) {
    const there = listed(functions.map(inWords));
    throw new BadEncoding("function", `has no function that takes these ${args.length} arguments: it has ${there}`);
  }
  if (another === undefined) return found.encoded;
  const fit = listed(fitting.map(({ each }) => inWords(each)));
  throw new BadEncoding("function", `has several functions that take these arguments: name one of ${fit}`);
}

function encodeDeploy(bytecode: Hex, abi: readonly unknown[] | undefined, args: readonly unknown[]) {
  if (!/^0x(?:[0-9a-fA-F]{2})+$/.test(bytecode)) {
    throw new BadEncoding("bytecode", "must be 0x and an even number of hex digits, with every library linked");
  }
  const found = abi === undefined ? undefined : inAbi(() => readAbi(abi).find((item) => item.type === "constructor"));
  if (found === undefined && args.length > 0) {
    throw new BadEncoding("args", "cannot be encoded without an ABI that has a constructor");
  }
  const inputs = inAbi(() => readInputs(found?.inputs ?? []));
  return concatHex([bytecode.toLowerCase() as Hex, encodeArguments(inputs, args)]);
}

function encodeArguments(inputs: readonly AbiParameter[], args: readonly unknown[]) {
  if (inputs.length !== args.length) {
    const wanted = inputs.map(({ type, name = "" }) => (name === "" ? type : `${type} ${name}`)).join(", ");
    throw new BadEncoding("args", `must have ${inputs.length} members (${wanted}), not ${args.length}`);
  }
  const values = inputs.map((input, index) => toAbiValue(input, args[index], `args.${index}`));
  return foreign("args", "cannot be encoded", () => encodeAbiParameters(inputs.map(unnamed), values));
}

/** Removes parameter names: tuples are passed as lists, and viem takes a list only for components without names. */
function unnamed({ type, components }: AbiParameter): AbiParameter {
  return components === undefined ? { type } : { type, components: components.map(unnamed) };
}

interface AbiItem {
  readonly type: unknown;
  readonly name?: unknown;
  readonly inputs?: unknown;
}

/** Parses an ABI given as JSON or as a list of human-readable lines. */
function readAbi(abi: readonly unknown[]): readonly AbiItem[] {
  if (!abi.every((item) => typeof item === "string")) return abi.map(readItem);
  if (abi.join("").length > LONGEST_SIGNATURE) {
    throw new BadEncoding("function", `is longer than ${LONGEST_SIGNATURE} characters: give the ABI as JSON`);
  }
  return foreign("function", "is not an ABI", () => parseSignatures(abi as readonly string[])).map(readItem);
}

function readItem(item: unknown): AbiItem {
  if (typeof item !== "object" || item === null || !("type" in item)) {
    throw new BadEncoding("function", "is not an ABI: each entry, and each of its inputs, needs a type");
  }
  return item;
}

function readFunction({ type, name, inputs }: AbiItem) {
  if (type !== "function" || typeof name !== "string" || !FUNCTION_NAME.test(name)) {
    throw new BadEncoding("function", `is not a function: ${String(type).slice(0, 40)} ${String(name).slice(0, 40)}`);
  }
  const read = readInputs(inputs ?? []);
  const selector = foreign("function", "has no selector", () =>
    toFunctionSelector({ type: "function", name, inputs: read, outputs: [], stateMutability: "nonpayable" }),
  );
  return { name, selector, inputs: read };
}

/** Valid function names. "constructor(address)" is a mistake of the caller, not a function named `constructor`. */
const FUNCTION_NAME = /^(?!(?:constructor|receive|fallback)$)[A-Za-z_$][\w$]*$/;
const KNOWN_TYPE =
  /^(?:address|bool|string|bytes|bytes(?:[1-9]|[12]\d|3[0-2])|u?int(?:\d{1,3})?|tuple)((?:\[\d{0,4}\])*)$/;

function readInputs(inputs: unknown, depth = 0): readonly AbiParameter[] {
  if (!Array.isArray(inputs)) throw new BadEncoding("function", "is not an ABI: inputs must be a list");
  if (depth > DEEPEST_TUPLE) throw new BadEncoding("function", "nests tuples too deeply");
  return inputs.map((input, index) => readParameter(input, depth, index));
}

function readParameter(value: unknown, depth: number, index: number): AbiParameter {
  const { type, name, components } = readItem(value) as AbiItem & { readonly components?: unknown };
  if (typeof type !== "string" || !isKnownType(type)) {
    const called = typeof name === "string" && name !== "" ? ` (${name.slice(0, 40)})` : "";
    const where = `${depth === 0 ? "argument" : "tuple member"} ${index}${called}`;
    throw new BadEncoding("function", `${where}: ${noSuchType(String(type))}`);
  }
  const named = typeof name === "string" ? { type: canonical(type), name } : { type: canonical(type) };
  return type.startsWith("tuple") ? { ...named, components: readInputs(components ?? [], depth + 1) } : named;
}

function isKnownType(type: string) {
  const bits = /^u?int(\d*)/.exec(type)?.[1] ?? "";
  const integerFits = bits === "" || (Number(bits) % 8 === 0 && Number(bits) >= 8 && Number(bits) <= 256);
  return KNOWN_TYPE.test(type) && integerFits && !bits.startsWith("0");
}

/**
 * Canonical name of a type: `uint` and `int` mean 256 bits (Solidity ABI), and the selector is computed from the long
 * form.
 */
const canonical = (type: string) => type.replace(/^(u?int)(?=\[|$)/, "$1256");

const USUAL_TYPES =
  "uint256 int256 address bool string bytes bytes32 bytes4 uint8 uint16 uint32 uint64 uint128 uint256[] address[] tuple".split(
    " ",
  );

function noSuchType(type: string) {
  const near = nearestName(type, USUAL_TYPES);
  return `\`${type.slice(0, 40)}\` is no Solidity type${near === null ? "" : `; did you mean \`${near}\`?`}`;
}

/** Runs `act`. viem throws many error classes here, and each means that the caller's input is wrong. */
function foreign<T>(path: string, complaint: string, act: () => T, signature = "") {
  try {
    return act();
  } catch (error) {
    throw new BadEncoding(path, `${complaint}: ${wordsOf(error, signature)}`);
  }
}

/**
 * Prefix that names the position in `args` of the first argument of this type. Empty if the signature contains a tuple.
 */
function placeOf(type: string, signature: string) {
  const inner = signature.slice(signature.indexOf("(") + 1, signature.lastIndexOf(")"));
  const at = inner.includes("(") ? -1 : inner.split(",").findIndex((each) => each.trim().split(" ")[0] === type);
  return at === -1 ? "" : `argument ${at}: `;
}

/**
 * Error text for the caller. The first line of viem's message names the rule; the offending type or text is in
 * `metaMessages` or `details`.
 */
function wordsOf(error: unknown, signature: string) {
  const { metaMessages, details } = error as { metaMessages?: readonly string[]; details?: string };
  const type = /^Type "(.*)" is not a valid ABI type/s.exec(metaMessages?.[0] ?? "")?.[1];
  if (type !== undefined) return `${placeOf(type, signature)}${noSuchType(type)}`;
  const firstLine = error instanceof Error ? (error.message.split("\n")[0] ?? "") : "";
  if (firstLine === "Unknown signature.") return 'write it as "transfer(address,uint256)"';
  return details === undefined || details === "" ? firstLine : `${firstLine} (${details.slice(0, 80)})`;
}
