import { type Answer, EXECUTION_ERROR, fault, fieldOf, type Handle, INVALID_PARAMS, REVERTED } from "./json-rpc.ts";

/**
 * Refuses or rewrites calls that are known to make EDR panic or hang. EDR is native code: a panic ends the process,
 * and a long computation stops the chain. The behaviour of contracts at run time is not covered.
 */
export function guardEdr(edr: Handle): Handle {
  return async (method, params) => {
    const given: readonly unknown[] = Array.isArray(params) ? params : [];
    const refusal = (await REFUSALS.get(method)?.(given)) ?? null;
    if (refusal !== null) return refusal;
    return edr(method, RANGED.has(method) ? await withinHead(edr, given, params) : params);
  };
}

type Refuse = (params: readonly unknown[]) => Answer | null | Promise<Answer | null>;

const REFUSALS = new Map(
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

function toQuantity(given: unknown) {
  if (typeof given === "number" && Number.isInteger(given)) return BigInt(given);
  return typeof given === "string" && /^(?:0x[0-9a-f]+|[0-9]+)$/i.test(given) ? BigInt(given) : 0n;
}

function refuseCall([call, , overrides]: readonly unknown[]) {
  if (isBeyondWealth(call)) return fault(EXECUTION_ERROR, "insufficient funds for transfer");
  if (isCutCreation(call)) {
    return fault(REVERTED, "execution reverted: the embedded chain cannot run code that is cut off in a PUSH20");
  }
  const refusals = Object.values(overrides ?? {}).map((account) => refuseCode(fieldOf(account, "code")));
  return refusals.find((refusal) => refusal !== null) ?? null;
}

/**
 * True if a call's prices or value are too large. EDR adds the gas cost (128 bits) and the value (256 bits) without
 * overflow checks. Prices above 100 bits or a value above 255 bits exceed every account's balance, and a call has less
 * than 2^28 gas.
 */
function isBeyondWealth(call: unknown) {
  const exceeds = (field: string, bits: bigint) => toQuantity(fieldOf(call, field)) >> bits > 0n;
  const prices = ["gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"];
  return prices.some((price) => exceeds(price, 100n)) || exceeds("value", 255n);
}

/**
 * Matches code that starts with PUSH20 but ends before its 20 bytes. EDR reads those bytes as a library's address, and
 * panics if they are missing.
 */
const CUT_PUSH = /^0x73(?:[0-9a-f]{2}){0,19}$/i;
const CUT_CREATION = fault(
  EXECUTION_ERROR,
  "Trying to send a deployment transaction whose init code length is less than its PUSH20 takes: the embedded chain cannot run it",
);

function isCutCreation(call: unknown) {
  if ((fieldOf(call, "to") ?? null) !== null) return false;
  return isCutPush(fieldOf(call, "data")) || isCutPush(fieldOf(call, "input"));
}

function isCutPush(code: unknown) {
  return typeof code === "string" && CUT_PUSH.test(code);
}

/**
 * Matches, in RLP, a contract creation whose PUSH20 code is too short: no receiver, any value, and up to 20 bytes that
 * begin with PUSH20. False positives are possible, false negatives are not.
 */
const MAYBE_CUT_CREATION = /80(?:[0-7].|80|(?:8[1-9a-f]|9.|a0)(?:..){1,32})(?:8[2-9a-f]|9[0-4])?73/i;

async function isCutCreationSigned(bytes: unknown) {
  if (typeof bytes !== "string" || !MAYBE_CUT_CREATION.test(bytes)) return false;
  const { parseTransaction } = await import("viem/utils");
  try {
    return isCutCreation(parseTransaction(bytes as `0x${string}`));
  } catch {
    // Let bytes that cannot be parsed through to EDR: its own error message is better.
    return false;
  }
}

/**
 * Maximum base fee. EDR's base fee has 64 bits and grows by up to an eighth per block. At this maximum, twenty full
 * blocks can follow before it overflows.
 */
const MOST_BASE_FEE = 2n ** 60n;

/**
 * Maximum timestamp in seconds. EDR stores timestamps in 63 bits without overflow checks. This limit lasts for 34,000
 * years.
 */
const MOST_SECONDS = 2n ** 40n;
/** Maximum number of blocks to mine at once: EDR searches logs block by block, including blocks mined in bulk. */
const MOST_BLOCKS = 2n ** 24n;

function refuseTime(seconds: bigint) {
  return seconds < MOST_SECONDS ? null : fault(INVALID_PARAMS, `time must be under ${MOST_SECONDS} seconds`);
}

function refuseMining(blocks: unknown, interval: unknown) {
  const count = blocks === undefined ? 1n : toQuantity(blocks);
  if (count > MOST_BLOCKS) return fault(INVALID_PARAMS, `at most ${MOST_BLOCKS} blocks at once`);
  return refuseTime(count * toQuantity(interval));
}

/** Refuses code that makes EDR panic. Code that starts like a delegation (EIP-7702) must be a complete delegation. */
function refuseCode(code: unknown) {
  if (isCutPush(code)) return fault(INVALID_PARAMS, "the embedded chain cannot run code that is cut off in a PUSH20");
  if (typeof code !== "string" || !/^0xef01/i.test(code) || /^0xef0100[0-9a-f]{40}$/i.test(code)) return null;
  return fault(INVALID_PARAMS, "code that begins with 0xef01 must be 0xef0100 and an address");
}

const RANGED: ReadonlySet<string> = new Set(["eth_getLogs", "eth_newFilter"]);

/**
 * Limits a log filter to the chain's newest block: EDR iterates to the last requested block, even if it does not exist.
 */
async function withinHead(edr: Handle, [filter, ...rest]: readonly unknown[], params: unknown) {
  const toBlock = fieldOf(filter, "toBlock");
  if (typeof toBlock !== "string" || !QUANTITY.test(toBlock)) return params;
  const head = await edr("eth_blockNumber", []);
  if ("error" in head || toQuantity(toBlock) <= toQuantity(head.result)) return params;
  return [{ ...(filter as object), toBlock: "latest" }, ...rest];
}
