import { numberToHex } from "viem/utils";
import { defined } from "../../../domain/defined.ts";
import type { Block, Call, Prospect, Simulation } from "../../../ports/chain.ts";
import { decodeRevert, revertDataOf, shorten, textsOf } from "../codec/error-texts.ts";
import { fetchTagged } from "../rpc/read-block.ts";
import { BadAnswer, RpcErrorAnswer, type RpcReply, read, resultOf } from "../rpc/rpc-errors.ts";
import type { RpcTransport } from "../rpc/transport.ts";
import { recogniseWordings } from "../submit/submission-wordings.ts";
import { fetchFeeMarket } from "./agree-on-market.ts";

/**
 * Simulates a call: with `eth_estimateGas` if it has no gas limit, else with `eth_call`. The balance is read in the
 * same batch, because EDR and Erigon let a call spend more than the account has.
 *
 * The receiver's code is read in two cases. First, if the gas of a plain transfer is known: a transfer to a receiver
 * without code then needs no estimate. Second, if the caller wants to know whether the receiver has code: a call to an
 * address without code has no effect.
 *
 * An unknown error is thrown, so that another endpoint is asked.
 */
export async function simulateCall(rpc: RpcTransport, call: Call): Promise<Simulation> {
  const asksCode = call.asksCode === true || (call.gas === undefined && call.gasWithoutCode !== undefined);
  const [execution, funds, code] = await rpc.batch([
    { method: call.gas === undefined ? "eth_estimateGas" : "eth_call", params: [callObject(call), "latest"] },
    { method: "eth_getBalance", params: [call.from, "latest"] },
    ...(asksCode ? [{ method: "eth_getCode", params: [call.to, "latest"] }] : []),
  ]);
  const balance = read.bigint(resultOf(funds), "eth_getBalance");
  if (call.value > balance) {
    return { outcome: "insufficientFunds", detail: `value ${call.value} wei is over the balance of ${balance} wei` };
  }
  if (call.gasWithoutCode !== undefined && hasNoCode(code)) return { outcome: "ok", gas: call.gasWithoutCode, balance };
  if (execution?.ok === true) {
    return { outcome: "ok", gas: gasOf(call, execution.result), balance, ...(call.asksCode ? codeIn(code) : {}) };
  }
  const refusal = classifyFailure(execution?.error, call);
  if (refusal === null) throw execution?.error ?? new BadAnswer("it left a call unanswered");
  return refusal;
}

/** Reads the newest block first, so that all later responses are from that block or a newer one. */
export async function fetchProspect(rpc: RpcTransport, call: Call): Promise<Prospect> {
  const head = (await fetchTagged(rpc, "latest")) as Block;
  const [simulation, { market }] = await Promise.all([simulateCall(rpc, call), fetchFeeMarket(rpc)]);
  return { head, market, simulation };
}

/** True if the receiver has code; absent if the response cannot be read. */
function codeIn(reply: RpcReply | undefined): { readonly hasCode?: boolean } {
  if (reply?.ok !== true || typeof reply.result !== "string") return {};
  if (reply.result === "0x") return { hasCode: false };
  return CODE.test(reply.result) ? { hasCode: true } : {};
}

/** Matches the first byte of code. That is enough: code may have 48 kB, and it is not decoded here. */
const CODE = /^0x[0-9a-fA-F]{2}/;

/** True if the receiver has no code. An unreadable response counts as code, so that the gas estimate decides. */
const hasNoCode = (reply: RpcReply | undefined) => reply?.ok === true && reply.result === "0x";

/** Builds the call object of `eth_call` and `eth_estimateGas`. */
export function callObject({ from, to, data, value, gas, accessList }: Call) {
  const limit = gas === undefined ? gas : numberToHex(gas);
  return defined({ from, to: to ?? undefined, data, value: numberToHex(value), gas: limit, accessList });
}

function gasOf(call: Call, result: unknown) {
  if (call.gas === undefined) return read.gas(result, "eth_estimateGas");
  read.bytes(result, "eth_call");
  return call.gas;
}

function classifyFailure(error: Error | undefined, call: Call): Simulation | null {
  if (!(error instanceof RpcErrorAnswer)) return null;
  const revert = revertOf(error);
  if (revert !== null) return revert;
  const detail = shorten(error.message);
  const wordings = recogniseWordings(error);
  if (wordings.some((each) => each.answer === "insufficientFunds")) return { outcome: "insufficientFunds", detail };
  for (const outcome of ["gasTooLow", "gasOverBlock"] as const) {
    if (wordings.some((each) => each.cause === outcome)) return { outcome, detail };
  }
  // The node estimates with up to the block's gas limit. So if an estimate runs out of gas, the call needs more gas
  // than a block has.
  if (says(error, OUT_OF_GAS)) return { outcome: call.gas === undefined ? "gasOverBlock" : "gasTooLow", detail };
  return says(error, HALTED) ? { outcome: "revert", revert: { name: null, message: detail, data: "0x" } } : null;
}

const OUT_OF_GAS = /out ?of ?gas|gas required exceeds allowance/i;
const REVERTED = /\brevert(ed)?\b/i;
const REASON = /reverted(?: with reason string)?:? '?(.+?)'?$/is;
/**
 * Error texts of an execution that ended without REVERT: `assert` of old Solidity, invalid jumps, code over the size
 * limit.
 */
const HALTED = new RegExp(
  [
    "invalid ?(fe)?opcode|bad ?instruction|opcode ?not ?found|\\bnotactivated\\b",
    "invalid ?jump|stack ?(under|over)flow|out ?of ?offset|return data out of bounds",
    "max (init)?code size exceeded|init ?code ?(size ?limit|too ?large)|contract ?size ?limit",
    "must not begin with 0xef|starting ?with ?ef|(address|create) ?collision|precompile ?error",
  ].join("|"),
  "i",
);

function revertOf(error: RpcErrorAnswer): Simulation | null {
  const data = revertDataOf(error.data);
  if (data !== null) return { outcome: "revert", revert: decodeRevert(data) };
  if (error.code !== 3 && !says(error, REVERTED)) return null;
  // Some providers remove the revert data, but the revert reason may still be in the error message.
  const message = REASON.exec(error.message)?.[1];
  const words = message === undefined || SAYS_NO_REASON.test(message) ? null : shorten(message);
  return { outcome: "revert", revert: { name: words === null ? null : "Error", message: words, data: "0x" } };
}

const SAYS_NO_REASON = /without (a )?reason|0x$/i;

const says = (error: RpcErrorAnswer, words: RegExp) => textsOf(error).some((text) => words.test(text));
