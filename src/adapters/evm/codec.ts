import {
  concatHex,
  encodeAbiParameters,
  getAddress,
  getContractAddress,
  parseAbi,
  parseAbiItem,
  toFunctionSelector,
} from "viem/utils";
import type { Address, Hex } from "../../domain/lane.ts";
import { BadEncoding, type Callee, type Codec } from "../../ports/codec.ts";
import { type AbiParameter, parseAddress, toAbiValue } from "./abi-values.ts";
import { decodeTransaction } from "./decode-transaction.ts";
import { transactionObject } from "./transaction-object.ts";

/** A parser of someone else's grammar meets callers' text: bounded, so that no signature is worth an attack. */
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
    // Callers use few functions; one who makes them up only empties the cache.
    if (signatures.size >= SIGNATURES_KEPT) signatures.clear();
    signatures.set(text, parsed);
    return parsed;
  };
  return {
    parseAddress: (text) => parseAddress(text),
    // viem keeps the last few thousand checksums, so that a busy signer's costs one hash.
    checksum: (address) => getAddress(address),
    contractAddress: (from, nonce) => getContractAddress({ from, nonce: BigInt(nonce) }).toLowerCase() as Address,
    encodeCall: (callee, args) =>
      typeof callee === "string"
        ? encodeFunction(bySignature(callee), args)
        : encodeFitting(candidates(callee, bySignature), args),
    functions: (callee) => (typeof callee === "string" ? [bySignature(callee)] : candidates(callee, bySignature)),
    encodeDeploy,
    decodeTransaction,
    transactionObject,
  };
}

type AbiFunction = ReturnType<typeof readFunction>;

function parseSignature(text: string): AbiFunction {
  if (text.length > LONGEST_SIGNATURE) throw new BadEncoding("function", "is too long");
  if (text.split("(").length > MOST_PARENTHESES) throw new BadEncoding("function", "has too many tuples");
  const item = foreign("function", "is not a function signature", () =>
    parseAbiItem(text.trim().startsWith("function ") ? text.trim() : `function ${text.trim()}`),
  );
  return readFunction(readItem(item));
}

function encodeFunction({ selector, inputs }: AbiFunction, args: readonly unknown[]): Hex {
  return concatHex([selector, encodeArguments(inputs, args)]);
}

/** Other entries of the ABI are not looked at: a library's ABI may hold functions that cannot be called from outside. */
function candidates(callee: Exclude<Callee, string>, bySignature: (text: string) => AbiFunction) {
  const named = "abi" in callee ? callee.function : null;
  const functions = readAbi("abi" in callee ? callee.abi : callee).filter((item) => item.type === "function");
  if (named === null) return functions.map(readFunction);
  const wanted = named.includes("(") ? bySignature(named).selector : null;
  const found = functions
    .filter(({ name }) => name === (wanted === null ? named : nameIn(named)))
    .map(readFunction)
    .filter(({ selector }) => wanted === null || selector === wanted);
  if (found.length === 0) throw new BadEncoding("function", `abi has no function named ${named.slice(0, 200)}`);
  return found;
}

function nameIn(signature: string): string {
  return /^(?:function )?([^(]*)/.exec(signature.trim())?.[1]?.trim() ?? "";
}

/** The one function that takes these arguments. With a single candidate its own complaint is the useful one. */
function encodeFitting(functions: readonly AbiFunction[], args: readonly unknown[]): Hex {
  const [only, ...more] = functions;
  if (only === undefined) throw new BadEncoding("function", "has no function in its ABI");
  if (more.length === 0) return encodeFunction(only, args);
  const fitting = functions.flatMap((each) => {
    try {
      return [encodeFunction(each, args)];
    } catch (error) {
      if (error instanceof BadEncoding) return [];
      throw error;
    }
  });
  const [encoded, another] = fitting;
  if (encoded === undefined) throw new BadEncoding("function", "has no function that takes these arguments");
  if (another !== undefined) throw new BadEncoding("function", "has several functions that take these arguments");
  return encoded;
}

function encodeDeploy(bytecode: Hex, abi: readonly unknown[] | undefined, args: readonly unknown[]): Hex {
  if (!/^0x(?:[0-9a-fA-F]{2})+$/.test(bytecode)) {
    throw new BadEncoding("bytecode", "must be 0x and an even number of hex digits, with every library linked");
  }
  const found = abi === undefined ? undefined : readAbi(abi).find((item) => item.type === "constructor");
  if (found === undefined && args.length > 0) {
    throw new BadEncoding("args", "cannot be encoded without an ABI that has a constructor");
  }
  return concatHex([bytecode.toLowerCase() as Hex, encodeArguments(readInputs(found?.inputs ?? []), args)]);
}

function encodeArguments(inputs: readonly AbiParameter[], args: readonly unknown[]): Hex {
  if (inputs.length !== args.length) {
    throw new BadEncoding("args", `must have ${inputs.length} members, not ${args.length}`);
  }
  const values = inputs.map((input, index) => toAbiValue(input, args[index], `args.${index}`));
  return foreign("args", "cannot be encoded", () => encodeAbiParameters(inputs.map(unnamed), values));
}

/** Tuples are given as lists, and the encoder takes lists only for members without names. */
function unnamed({ type, components }: AbiParameter): AbiParameter {
  return components === undefined ? { type } : { type, components: components.map(unnamed) };
}

interface AbiItem {
  readonly type: unknown;
  readonly name?: unknown;
  readonly inputs?: unknown;
}

/** JSON, or a list of human-readable lines. */
function readAbi(abi: readonly unknown[]): readonly AbiItem[] {
  if (!abi.every((item) => typeof item === "string")) return abi.map(readItem);
  if (abi.join("").length > LONGEST_SIGNATURE) throw new BadEncoding("function", "is too long");
  return foreign("function", "is not an ABI", () => parseAbi(abi as readonly string[])).map(readItem);
}

function readItem(item: unknown): AbiItem {
  if (typeof item !== "object" || item === null || !("type" in item)) {
    throw new BadEncoding("function", "is not an ABI: each member needs a type");
  }
  return item;
}

function readFunction({ type, name, inputs }: AbiItem) {
  if (type !== "function" || typeof name !== "string" || !FUNCTION_NAME.test(name)) {
    throw new BadEncoding("function", "is not a function");
  }
  const read = readInputs(inputs ?? []);
  const selector = foreign("function", "has no selector", () =>
    toFunctionSelector({ type: "function", name, inputs: read, outputs: [], stateMutability: "nonpayable" }),
  );
  return { selector, inputs: read };
}

/** "constructor(address)" is a mistake, not a function of that name. */
const FUNCTION_NAME = /^(?!(?:constructor|receive|fallback)$)[A-Za-z_$][\w$]*$/;
const KNOWN_TYPE =
  /^(?:address|bool|string|bytes|bytes(?:[1-9]|[12]\d|3[0-2])|u?int(?:\d{1,3})?|tuple)((?:\[\d{0,4}\])*)$/;

function readInputs(inputs: unknown, depth = 0): readonly AbiParameter[] {
  if (!Array.isArray(inputs)) throw new BadEncoding("function", "is not an ABI: inputs must be a list");
  if (depth > DEEPEST_TUPLE) throw new BadEncoding("function", "nests tuples too deeply");
  return inputs.map((input) => readParameter(input, depth));
}

function readParameter(value: unknown, depth: number): AbiParameter {
  const { type, name, components } = readItem(value) as AbiItem & { readonly components?: unknown };
  if (typeof type !== "string" || !isKnownType(type)) {
    throw new BadEncoding("function", `has a parameter of type ${String(type).slice(0, 40)}, which is not known`);
  }
  const named = typeof name === "string" ? { type: canonical(type), name } : { type: canonical(type) };
  return type.startsWith("tuple") ? { ...named, components: readInputs(components ?? [], depth + 1) } : named;
}

function isKnownType(type: string): boolean {
  const bits = /^u?int(\d*)/.exec(type)?.[1] ?? "";
  const integerFits = bits === "" || (Number(bits) % 8 === 0 && Number(bits) >= 8 && Number(bits) <= 256);
  return KNOWN_TYPE.test(type) && integerFits && !bits.startsWith("0");
}

/** `uint` and `int` are short for 256 bits; the selector is taken over the long form. */
function canonical(type: string): string {
  return type.replace(/^(u?int)(?=\[|$)/, "$1256");
}

/** viem refuses with many classes of errors; each of them means a mistake of the caller. */
function foreign<T>(path: string, complaint: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    const firstLine = error instanceof Error ? (error.message.split("\n")[0] ?? "") : "";
    throw new BadEncoding(path, firstLine === "" ? complaint : `${complaint}: ${firstLine}`);
  }
}
