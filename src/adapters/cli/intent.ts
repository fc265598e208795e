/** Builds the request of `fencepost send` from its options, an ABI signature, or a file. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Address, CreateTransaction } from "../../client/index.ts";
import { describedTypes, parameterTypes, toArguments } from "./abi-arguments.ts";
import { wei } from "./amounts.ts";
import { given } from "./answer.ts";
import { misused } from "./failure.ts";
import { FEES } from "./operate.ts";
import { CHAIN_ID, count, json } from "./remote.ts";

/** Fields of POST /tx, other than the payload, for each of which the CLI has an option. */
const BESIDE = ["nonce", "chainId", "requestId", "metadata", "validUntil", "allowNoCode"] as const;
const PRICED = ["value", "gas", "maxFeePerGas", "maxPriorityFeePerGas", "gasPrice", "type"] as const;

export type IntentOptions = Partial<Pick<CreateTransaction, (typeof BESIDE)[number]>> & {
  readonly [Name in (typeof PRICED)[number] | "pool" | "sticky" | "to" | "data" | "bytecode"]?: string;
} & { readonly signer?: Address } & {
  /**
   * Paths of files: a compiled contract (`deploy`), an ABI or compiled contract (`abi`), or a list of whole
   * transactions (`file`).
   */
  readonly [File in "deploy" | "abi" | "file"]?: string;
};

/** Adds a transaction to a command: the function call as arguments, everything else as options. */
export function addIntent(command: Command): Command {
  command
    .argument("[signature]", "of the function, as in 'transfer(address,uint256)'")
    .argument("[args...]", "its arguments; lists and tuples as JSON")
    .option("--signer <address>", "its sender")
    .option("--to <address>", "its receiver")
    .option("--value <amount>", "wei, or as in 1.5ether, 20gwei", wei)
    .option("--data <hex>", "an encoded call, instead of a signature")
    .option("--abi <file>", "where the function is described, instead of in the signature")
    .option("--deploy <file>", "a compiled contract to deploy, as Hardhat, Foundry or solc write it")
    .option("--bytecode <hex>", "a contract to deploy")
    .option("--gas <number>", "gas limit, instead of an estimate")
    .addOption(new Option("--type <type>", "instead of what the chain has").choices(["legacy", "eip2930", "eip1559"]))
    .option("--pool <name>", "any signer of this pool, instead of --signer")
    .option("--sticky <key>", "of the pool, always the same signer for the same key")
    .option("--nonce <number>", "exactly this nonce, or nothing is sent; without it, the next one", count)
    .option("--file <file>", "the whole transaction, or several; - is standard input")
    .option("--request-id <id>", "your own id: a repeat is the same transaction; without it, a new one is made up")
    .option("--metadata <json>", "your own notes, kept with it", json)
    .option("--valid-until <instant>", "cancelled if it is not mined by then, such as 2026-01-31T12:00:00Z")
    .option("--allow-no-code", "accept call data to an address without code, which does nothing")
    .addOption(CHAIN_ID);
  for (const option of FEES) command.addOption(option);
  return command;
}

type Read = (path: string) => Promise<string>;

/** Builds one create request per transaction. `args` holds the function signature and its arguments. */
export async function intentsOf(
  args: readonly string[],
  options: IntentOptions,
  read: Read,
): Promise<readonly CreateTransaction[]> {
  if (options.file === undefined) return [await intentOf(args, options, read)];
  if (args.length > 0) throw misused("--file has the whole transaction: give no signature beside it");
  const content = await document(options.file, read);
  const { transactions: many } = Array.isArray(content)
    ? { transactions: content }
    : (content as { transactions?: unknown });
  // Ignore the option `metadata`: each transaction of a file has its own metadata.
  const { requestId, nonce, metadata: _, ...beside } = picked(options, BESIDE);
  const common = { ...beside, ...given({ signer: signerOf(options) }) };
  if (!Array.isArray(many)) return [{ ...(content as CreateTransaction), ...common, ...given({ requestId, nonce }) }];
  if (nonce !== undefined) throw misused("--nonce is one transaction's: the file has several");
  return many.map((each, at) => {
    const named = requestId === undefined ? {} : { requestId: `${requestId}-${at + 1}` };
    return { ...(each as CreateTransaction), ...common, ...named };
  });
}

async function intentOf(args: readonly string[], options: IntentOptions, read: Read): Promise<CreateTransaction> {
  const signer = signerOf(options);
  if (signer === undefined)
    throw misused("--signer is missing: name the sender (`fencepost signers` lists them), or a pool with --pool");
  const payload = {
    ...(await bodyOf(args, options, read)),
    ...picked(options, PRICED),
  } as CreateTransaction["payload"];
  return { signer, payload, ...picked(options, BESIDE) };
}

/** Copies the named options that are set. */
function picked<Name extends keyof IntentOptions>(options: IntentOptions, names: readonly Name[]) {
  const said = names.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]]));
  return Object.fromEntries(said) as Partial<Pick<CreateTransaction & IntentOptions, Name>>;
}

function signerOf({ signer, pool, sticky: stickyKey }: IntentOptions) {
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
  const abi = options.abi === undefined ? undefined : await abiIn(options.abi, read);
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
  const artifact: Artifact = deploy === undefined ? {} : await document(deploy, read);
  const bytecode = options.bytecode ?? bytecodeIn(artifact, deploy ?? "");
  // The arguments of a deployment are `'constructor(uint256)' 42`, or only `42` if an ABI provides the types.
  const [first = "", ...rest] = args;
  if (/^constructor\s*\(/.test(first)) {
    return { bytecode, abi: [first], args: argumentsOf(rest, parameterTypes(first)) };
  }
  const abi = abiFile === undefined ? artifact.abi : await abiIn(abiFile, read);
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

/** Reads the bytecode of a compiled contract: a string in files of Hardhat and solc, an object in files of Foundry. */
function bytecodeIn({ bytecode }: Artifact, file: string) {
  const text = typeof bytecode === "object" ? bytecode.object : bytecode;
  if (typeof text !== "string" || text === "") throw misused(`${file} has no bytecode: is it a compiled contract?`);
  return text.startsWith("0x") ? text : `0x${text}`;
}

async function abiIn(file: string, read: Read): Promise<readonly unknown[]> {
  const content = await document(file, read);
  const abi = Array.isArray(content) ? content : (content as Artifact).abi;
  if (!Array.isArray(abi)) throw misused(`${file} has no ABI: a list, or an object with one under "abi"`);
  return abi;
}

function argumentsOf(texts: readonly string[], types: readonly string[] | null) {
  try {
    return toArguments(texts, types);
  } catch (error) {
    throw error instanceof InvalidArgumentError ? misused(error.message) : error;
  }
}

async function document(file: string, read: Read) {
  const text = await read(file);
  try {
    const content = json(text);
    if (typeof content === "object" && content !== null) return content;
  } catch {
    // Ignore the JSON error here: the failure is reported below, with the file's name.
  }
  throw misused(`${file === "-" ? "standard input" : file} is not a JSON object`);
}
