import { type Answer, EXECUTION_ERROR, fault, fieldOf, type Handle, INVALID_PARAMS, REVERTED } from "./json-rpc.ts";

/**
 * EDR is native code in this process: where it panics, the process ends, and while it counts, the chain stands still. What is
 * known to make it do so is refused, or said in another way, before it gets there. What code does while it runs cannot be
 * seen from here.
 */
export function spareEdr(edr: Handle): Handle {
  return async (method, params) => {
    const given: readonly unknown[] = Array.isArray(params) ? params : [];
    const refusal = (await REFUSALS.get(method)?.(given)) ?? null;
    if (refusal !== null) return refusal;
    return edr(method, RANGED.has(method) ? await withinHead(edr, given, params) : params);
  };
}

type Refuse = (params: readonly unknown[]) => Answer | null | Promise<Answer | null>;

const REFUSALS: ReadonlyMap<string, Refuse> = new Map(
  Object.entries<Refuse>({
    eth_call: refuseCall,
    eth_estimateGas: refuseCall,
    debug_traceCall: refuseCall,
    eth_sendTransaction: ([call]) => (isCutCreation(call) ? CUT_CREATION : null),
    eth_sendRawTransaction: async ([bytes]) => ((await isCutCreationSigned(bytes)) ? CUT_CREATION : null),
    evm_increaseTime: ([seconds]) => refuseTime(toQuantity(seconds)),
    evm_setNextBlockTimestamp: ([timestamp]) => refuseTime(toQuantity(timestamp)),
    evm_mine: ([timestamp]) => refuseTime(toQuantity(timestamp)),
    hardhat_mine: ([blocks, interval]) => refuseMining(blocks, interval),
    hardhat_setCode: ([, code]) => refuseCode(code),
    hardhat_setNextBlockBaseFeePerGas: ([price]) =>
      toQuantity(price) < MOST_BASE_FEE
        ? null
        : fault(INVALID_PARAMS, `the base fee must be under ${MOST_BASE_FEE} wei`),
  }),
);

const QUANTITY = /^0x[0-9a-f]+$/i;

function toQuantity(given: unknown): bigint {
  if (typeof given === "number" && Number.isInteger(given)) return BigInt(given);
  return typeof given === "string" && /^(?:0x[0-9a-f]+|[0-9]+)$/i.test(given) ? BigInt(given) : 0n;
}

function refuseCall([call, , overrides]: readonly unknown[]): Answer | null {
  if (isBeyondWealth(call)) return fault(EXECUTION_ERROR, "insufficient funds for transfer");
  if (isCutCreation(call)) {
    return fault(REVERTED, "execution reverted: the embedded chain cannot run code that is cut off in a PUSH20");
  }
  const replaced = typeof overrides === "object" && overrides !== null ? Object.values(overrides) : [];
  for (const account of replaced) {
    const refusal = refuseCode(fieldOf(account, "code"));
    if (refusal !== null) return refusal;
  }
  return null;
}

/**
 * Calls may spend what the account does not have, and it is not checked that the sum fits: the price of all gas into 128 bits,
 * with the value into 256. No account has half of either; a call has less than 2^28 gas.
 */
function isBeyondWealth(call: unknown): boolean {
  const prices = [fieldOf(call, "gasPrice"), fieldOf(call, "maxFeePerGas"), fieldOf(call, "maxPriorityFeePerGas")];
  return prices.some((price) => toQuantity(price) >> 100n > 0n) || toQuantity(fieldOf(call, "value")) >> 255n > 0n;
}

/** EDR looks for a library's address behind a PUSH20 that code begins with, and does not expect that the code may end there. */
const CUT_PUSH = /^0x73(?:[0-9a-f]{2}){0,19}$/i;
const CUT_CREATION = fault(
  EXECUTION_ERROR,
  "Trying to send a deployment transaction whose init code length is less than its PUSH20 takes: the embedded chain cannot run it",
);

function isCutCreation(call: unknown): boolean {
  if (fieldOf(call, "to") !== undefined && fieldOf(call, "to") !== null) return false;
  return isCutPush(fieldOf(call, "data")) || isCutPush(fieldOf(call, "input"));
}

function isCutPush(code: unknown): boolean {
  return typeof code === "string" && CUT_PUSH.test(code);
}

/** In RLP: no receiver, any value, and up to 20 bytes that begin with PUSH20. May be found by chance, is never missed. */
const MAYBE_CUT_CREATION = /80(?:[0-7].|80|(?:8[1-9a-f]|9.|a0)(?:..){1,32})(?:8[2-9a-f]|9[0-4])?73/i;

async function isCutCreationSigned(bytes: unknown): Promise<boolean> {
  if (typeof bytes !== "string" || !MAYBE_CUT_CREATION.test(bytes)) return false;
  const { parseTransaction } = await import("viem/utils");
  try {
    return isCutCreation(parseTransaction(bytes as `0x${string}`));
  } catch {
    // EDR says better what is wrong with it.
    return false;
  }
}

/** Base fees have 64 bits, and the next one may be an eighth higher: room for twenty full blocks. */
const MOST_BASE_FEE = 2n ** 60n;

/** Seconds are counted in 63 bits, unchecked. These last for 34,000 years. */
const MOST_SECONDS = 2n ** 40n;
/** Logs are looked for block by block, those that were mined by number alone included. */
const MOST_BLOCKS = 2n ** 24n;

function refuseTime(seconds: bigint): Answer | null {
  return seconds < MOST_SECONDS ? null : fault(INVALID_PARAMS, `time must be under ${MOST_SECONDS} seconds`);
}

function refuseMining(blocks: unknown, interval: unknown): Answer | null {
  const count = blocks === undefined ? 1n : toQuantity(blocks);
  if (count > MOST_BLOCKS) return fault(INVALID_PARAMS, `at most ${MOST_BLOCKS} blocks at once`);
  return refuseTime(count * toQuantity(interval));
}

/** What begins like a delegation (EIP-7702) has to be one. */
function refuseCode(code: unknown): Answer | null {
  if (isCutPush(code)) return fault(INVALID_PARAMS, "the embedded chain cannot run code that is cut off in a PUSH20");
  if (typeof code !== "string" || !/^0xef01/i.test(code) || /^0xef0100[0-9a-f]{40}$/i.test(code)) return null;
  return fault(INVALID_PARAMS, "code that begins with 0xef01 must be 0xef0100 and an address");
}

const RANGED: ReadonlySet<string> = new Set(["eth_getLogs", "eth_newFilter"]);

/** EDR goes through all numbers up to the last one asked for, whether or not there are such blocks. */
async function withinHead(edr: Handle, [filter, ...rest]: readonly unknown[], params: unknown): Promise<unknown> {
  const toBlock = fieldOf(filter, "toBlock");
  if (typeof toBlock !== "string" || !QUANTITY.test(toBlock)) return params;
  const head = await edr("eth_blockNumber", []);
  if ("error" in head || toQuantity(toBlock) <= toQuantity(head.result)) return params;
  return [{ ...(filter as object), toBlock: "latest" }, ...rest];
}
