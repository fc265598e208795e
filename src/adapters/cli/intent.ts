/** Builds the request of `fencepost send` from its options, an ABI signature, or a file. */
import { InvalidArgumentError } from "commander";
import type { CreateTransaction } from "../../client/index.ts";
import { describedTypes, parameterTypes, toArguments } from "./abi-arguments.ts";
import { given } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { json } from "./remote.ts";

export interface IntentOptions {
  readonly signer?: string;
  readonly pool?: string;
  readonly sticky?: string;
  readonly nonce?: number;
  readonly to?: string;
  readonly value?: string;
  readonly data?: string;
  readonly bytecode?: string;
  /** File of a compiled contract. */
  readonly deploy?: string;
  /** File of an ABI, or of a compiled contract. */
  readonly abi?: string;
  readonly file?: string;
  readonly gas?: string;
  readonly maxFeePerGas?: string;
  readonly maxPriorityFeePerGas?: string;
  readonly gasPrice?: string;
  readonly type?: string;
  readonly chainId?: number;
  readonly requestId?: string;
  readonly metadata?: unknown;
  readonly validUntil?: string;
  readonly allowNoCode?: boolean;
}

type Read = (path: string) => Promise<string>;

/** One create request per transaction; `args`: signature and arguments. */
export async function intentsOf(
  args: readonly string[],
  options: IntentOptions,
  read: Read,
): Promise<readonly CreateTransaction[]> {
  if (options.file === undefined) return [await intentOf(args, options, read)];
  if (args.length > 0) throw misused("--file has the whole transaction: give no signature beside it");
  const content = document(await read(options.file), options.file);
  const many = Array.isArray(content) ? content : transactionsIn(content);
  const { chainId, requestId, nonce, validUntil, allowNoCode } = options;
  const common = given({ signer: signerOf(options), chainId, validUntil, allowNoCode });
  if (many === null) return [{ ...(content as CreateTransaction), ...common, ...given({ requestId, nonce }) }];
  if (nonce !== undefined) throw misused("--nonce is one transaction's: the file has several");
  return many.map((each, at) => {
    const named = requestId === undefined ? {} : { requestId: `${requestId}-${at + 1}` };
    return { ...(each as CreateTransaction), ...common, ...named };
  });
}

function transactionsIn(content: unknown): readonly unknown[] | null {
  const { transactions } = content as { readonly transactions?: unknown };
  return Array.isArray(transactions) ? transactions : null;
}

async function intentOf(args: readonly string[], options: IntentOptions, read: Read): Promise<CreateTransaction> {
  const { nonce, chainId, requestId, metadata, validUntil, allowNoCode } = options;
  const signer = signerOf(options);
  if (signer === undefined)
    throw misused("--signer is missing: name the sender (`fencepost signers` lists them), or a pool with --pool");
  const { value, gas, maxFeePerGas, maxPriorityFeePerGas, gasPrice, type } = options;
  const priced = given({ value, gas, maxFeePerGas, maxPriorityFeePerGas, gasPrice, type });
  const payload = { ...(await bodyOf(args, options, read)), ...priced } as CreateTransaction["payload"];
  return {
    signer,
    payload,
    ...given({ nonce, chainId, requestId, metadata, validUntil, allowNoCode }),
  } as CreateTransaction;
}

function signerOf({ signer, pool, sticky: stickyKey }: IntentOptions): CreateTransaction["signer"] | undefined {
  if (pool === undefined) {
    if (stickyKey !== undefined) throw misused("--sticky chooses a signer of a pool: name it with --pool");
    return signer;
  }
  if (signer !== undefined) throw misused("--pool is given instead of --signer, not beside it");
  return { pool, ...given({ stickyKey }) };
}

async function bodyOf(args: readonly string[], options: IntentOptions, read: Read): Promise<object> {
  const { to, data, bytecode, deploy } = options;
  if (bytecode !== undefined || deploy !== undefined) return deployment(args, options, read);
  if (to === undefined) throw misused("--to is missing: an address, or --deploy or --bytecode for a new contract");
  const [signature, ...texts] = args;
  if (signature === undefined) return { to, ...given({ data }) };
  if (data !== undefined) throw misused("--data is the encoded call: give no signature beside it");
  const abi =
    options.abi === undefined ? undefined : abiIn(document(await read(options.abi), options.abi), options.abi);
  const types = parameterTypes(signature);
  if (types === null && abi === undefined) {
    throw misused(`${signature} is no signature: write it as 'transfer(address,uint256)', or give --abi`);
  }
  const known = types ?? describedTypes(abi ?? [], signature, texts.length);
  return { to, function: signature, ...given({ abi }), args: argumentsOf(texts, known) };
}

async function deployment(args: readonly string[], options: IntentOptions, read: Read): Promise<object> {
  const { to, data, deploy, abi: abiFile } = options;
  if (to !== undefined || data !== undefined) throw misused("a new contract has no --to and no --data");
  const artifact = deploy === undefined ? {} : (document(await read(deploy), deploy) as Artifact);
  const bytecode = options.bytecode ?? bytecodeIn(artifact, deploy ?? "");
  // `'constructor(uint256)' 42`, or only the arguments if an ABI has their types.
  const [first = "", ...rest] = args;
  if (/^constructor\s*\(/.test(first)) {
    return { bytecode, abi: [first], args: argumentsOf(rest, parameterTypes(first)) };
  }
  const abi = abiFile === undefined ? artifact.abi : abiIn(document(await read(abiFile), abiFile), abiFile);
  if (args.length > 0 && abi === undefined) {
    throw misused("arguments of a constructor need its signature, 'constructor(uint256)', or --abi");
  }
  const types = describedTypes(abi ?? [], null, args.length);
  return { bytecode, ...given({ abi }), ...(args.length > 0 && { args: argumentsOf(args, types) }) };
}

interface Artifact {
  readonly abi?: readonly unknown[];
  readonly bytecode?: string | { readonly object?: string };
}

/** A text (Hardhat, solc) or an object (Foundry). */
function bytecodeIn({ bytecode }: Artifact, file: string): string {
  const text = typeof bytecode === "object" ? bytecode.object : bytecode;
  if (typeof text !== "string" || text === "") throw misused(`${file} has no bytecode: is it a compiled contract?`);
  return text.startsWith("0x") ? text : `0x${text}`;
}

function abiIn(content: unknown, file: string): readonly unknown[] {
  const abi = Array.isArray(content) ? content : (content as Artifact).abi;
  if (!Array.isArray(abi)) throw misused(`${file} has no ABI: a list, or an object with one under "abi"`);
  return abi;
}

function argumentsOf(texts: readonly string[], types: readonly string[] | null): readonly unknown[] {
  try {
    return toArguments(texts, types);
  } catch (error) {
    throw error instanceof InvalidArgumentError ? misused(error.message) : error;
  }
}

function document(text: string, file: string): unknown {
  try {
    const content = json(text);
    if (typeof content === "object" && content !== null) return content;
  } catch {
    // Reported below, with the file's name.
  }
  throw misused(`${file === "-" ? "standard input" : file} is not a JSON object`);
}

function misused(line: string): CommandFailed {
  return new CommandFailed([line], EXIT_CODES.misused);
}
