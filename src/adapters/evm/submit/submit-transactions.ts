import {
  isStarted,
  NOT_STARTED,
  type NotStarted,
  SUBMIT_ANSWERS,
  type SubmitResult,
} from "../../../domain/chain/answers.ts";
import { defined } from "../../../domain/defined.ts";
import type { Address } from "../../../domain/lane.ts";
import type { UnsignedTransaction } from "../../../domain/transaction/transaction.ts";
import type { NodeSubmission, Send, SubmitOptions } from "../../../ports/chain.ts";
import { amountsInHex } from "../codec/decode-transaction.ts";
import { shorten } from "../codec/error-texts.ts";
import type { Endpoint, Endpoints } from "../rpc/endpoints.ts";
import {
  BadAnswer,
  type RpcErrorAnswer,
  RpcNotStarted,
  type RpcReply,
  RpcUnreachable,
  read,
} from "../rpc/rpc-errors.ts";
import { classifySubmission, namedGasCap } from "./submission-wordings.ts";

/**
 * Result of sending one transaction to one endpoint. `lost` is set if the endpoint gave no response; then the same
 * bytes may be sent to another endpoint.
 */
interface Submission {
  readonly result: Submitted;
  readonly lost: RpcUnreachable | null;
}

type Submitted = SubmitResult | NotStarted;

/** Implements `Chain.submit`. */
export async function submit(
  endpoints: Endpoints,
  sends: readonly Send[],
  { everywhere = false, privately = false }: SubmitOptions = {},
): Promise<readonly Submitted[]> {
  if (sends.length === 0) return [];
  const senders = endpoints.senders(privately);
  const results = await (everywhere ? submitToAll : submitInTurn)(endpoints, senders, sends);
  const isOneOfSeveral = senders.length === 1 && endpoints.usable().length > 1;
  return isOneOfSeveral ? results.map(withoutCap) : results;
}

/**
 * Drops the gas cap that an endpoint named, if only this endpoint was asked although others are up (it is private, or
 * the others are read-only). Its cap need not hold for the others.
 */
function withoutCap(result: Submitted): Submitted {
  return isStarted(result) ? { answer: result.answer, detail: result.detail } : result;
}

async function submitToAll(endpoints: Endpoints, senders: readonly Endpoint[], sends: readonly Send[]) {
  const all = await Promise.all(senders.map((endpoint) => submitTo(endpoints, endpoint, sends)));
  return sends.map((_, index) => concluded(all.flatMap((each) => each[index] ?? [])));
}

/**
 * Sends a transaction to the next endpoint if one did not answer, or rejected it for good: a rejection needs a second
 * endpoint's confirmation. Sending the same bytes again is safe, because the database already records that they may
 * have been sent.
 */
async function submitInTurn(endpoints: Endpoints, senders: readonly Endpoint[], sends: readonly Send[]) {
  const items = sends.map((send) => ({ send, said: [] as Submission[] }));
  for (const endpoint of senders) {
    const open = items.filter(({ said }) => isOpen(said));
    if (open.length === 0) break;
    const given = open.map(({ send }) => send);
    const submissions = await submitTo(endpoints, endpoint, given);
    for (const [at, { said }] of open.entries()) said.push(submissions[at] as Submission);
  }
  return items.map(({ said }) => concluded(said));
}

/** Submits transactions in order to one endpoint. Never throws an endpoint's error. */
async function submitTo(endpoints: Endpoints, endpoint: Endpoint, sends: readonly Send[]) {
  const submissions: Submission[] = [];
  try {
    await endpoints.askOne(endpoint, async (rpc) => {
      const calls = sends.map(({ raw, mayLeave }) => ({ method: "eth_sendRawTransaction", params: [raw], mayLeave }));
      submissions.push(...(await rpc.sendInOrder(calls)).map(readHashReply));
      // Throw here only to record the endpoint's health; the result of each transaction is kept.
      const started = submissions.filter(({ result }) => isStarted(result));
      if (started.length === 0) throw new RpcNotStarted();
      const [first] = started;
      if (first?.lost && started.every(({ lost }) => lost !== null)) throw first.lost;
    });
  } catch (error) {
    if (submissions.length === 0) {
      // The endpoint failed before a transaction was sent to it.
      const lost = lostSubmission(asLost(error, endpoint));
      return sends.map(({ mayLeave }) => (mayLeave() ? lost : NOT_SENT));
    }
    if (!(error instanceof RpcUnreachable || error instanceof RpcNotStarted)) throw error;
  }
  return submissions;
}

function asLost(error: unknown, { rpc }: Endpoint) {
  if (error instanceof RpcUnreachable) return error;
  if (!(error instanceof BadAnswer)) throw error;
  return new RpcUnreachable("malformed", `${rpc.label}: ${error.message}`, { cause: error });
}

const NOT_SENT: Submission = { result: NOT_STARTED, lost: null };

function lostSubmission(error: RpcUnreachable): Submission {
  return { result: { answer: "unknown", detail: shorten(error.message) }, lost: error };
}

/** Reads the response to a call that returns a transaction hash. */
function readHashReply(reply: RpcReply): Submission {
  if (reply.ok) return { result: readAcceptance(reply.result), lost: null };
  if (reply.error instanceof RpcUnreachable) return lostSubmission(reply.error);
  if (reply.error instanceof RpcNotStarted) return NOT_SENT;
  return { result: readRefusal(reply.error), lost: null };
}

function readAcceptance(result: unknown): SubmitResult {
  if (typeof result === "string" && HASH.test(result)) return { answer: "accepted", detail: null };
  return { answer: "unknown", detail: "the node answered with something that is no transaction hash" };
}

function readRefusal(error: RpcErrorAnswer) {
  const words = error.message === "" ? `error ${error.code} without a message` : error.message;
  const result: SubmitResult = { answer: classifySubmission(error), detail: shorten(words) };
  const gasCap = result.answer === "rejected" ? namedGasCap(error) : null;
  return gasCap === null ? result : { ...result, gasCap };
}

const HASH = /^0x[0-9a-f]{64}$/i;

/**
 * True if another endpoint should be tried: none has answered yet, or only one has rejected the transaction for good.
 */
function isOpen(said: readonly Submission[]) {
  const words = said.filter(({ result, lost }) => lost === null && isStarted(result));
  return words.length === 0 || (words.length === 1 && words[0]?.result.answer === "rejected");
}

/**
 * Combines the endpoints' responses about one transaction, in the order asked. A final rejection does not count until
 * every endpoint that is up has answered. If one has not, the transaction is submitted again until that endpoint
 * answers or counts as down.
 */
function concluded(said: readonly Submission[]): Submitted {
  const results = said.map(({ result }) => result).filter(isStarted);
  if (results.length === 0 && said.length > 0) return NOT_STARTED;
  const refusal = results.find(({ answer }) => answer === "rejected");
  // The second endpoint has not received the transactions before this one, so its "nonce too high" proves nothing.
  const result = weightiest(results.filter(({ answer }) => refusal === undefined || answer !== "nonceTooHigh"));
  if (result.answer !== "rejected") return result;
  const [silent] = said.flatMap(({ lost }) => lost ?? []);
  if (results.length === said.length && silent === undefined) return withAgreedCap(result, results);
  const why = silent?.message ?? "sending was stopped first";
  const detail = shorten(`refused (${result.detail ?? "without a message"}), and not confirmed: ${why}`);
  return { answer: "unknown", detail };
}

/** Adds a gas cap to the result only if every endpoint that was asked named one; then the highest counts. */
function withAgreedCap({ answer, detail }: SubmitResult, results: readonly SubmitResult[]): SubmitResult {
  const caps = results.map(({ gasCap }) => gasCap ?? null);
  const highest = caps.reduce((most, cap) => (most === null || cap === null ? null : cap > most ? cap : most));
  return highest === null || highest === undefined ? { answer, detail } : { answer, detail, gasCap: highest };
}

/** Returns the response that ranks first in `SUBMIT_ANSWERS`. */
function weightiest(answers: readonly SubmitResult[]) {
  const [first] = answers.toSorted((a, b) => SUBMIT_ANSWERS.indexOf(a.answer) - SUBMIT_ANSWERS.indexOf(b.answer));
  return first ?? { answer: "unknown", detail: "no endpoint could be asked" };
}

/**
 * Sends a transaction for which the chain node holds the key: `eth_sendTransaction` with every field set, so that the
 * node only adds its signature.
 */
export async function sendUnsigned(
  endpoints: Endpoints,
  from: Address,
  transaction: UnsignedTransaction,
  { mayLeave, privately = false }: Pick<SubmitOptions, "privately"> & Pick<Send, "mayLeave">,
): Promise<NodeSubmission | NotStarted> {
  // Send to one endpoint only, a private one if there is any, so that as few endpoints as possible see the payload.
  const [endpoint] = [...endpoints.senders(true), ...(privately ? [] : endpoints.senders(false))];
  if (endpoint === undefined) return { ...weightiest([]), txHash: null };
  const calls = [{ method: "eth_sendTransaction", params: [toParameter(from, transaction)], mayLeave }];
  try {
    return await endpoints.askOne(endpoint, async (rpc) => {
      const [reply] = await rpc.sendInOrder(calls);
      if (reply === undefined) throw new RpcUnreachable("malformed", "the endpoint left a call unanswered");
      if (!reply.ok && reply.error instanceof RpcNotStarted) throw reply.error;
      const { result, lost } = readHashReply(reply);
      if (lost !== null) throw lost;
      if (!isStarted(result)) return result;
      const isTaken = reply.ok && result.answer === "accepted";
      return { ...result, txHash: isTaken ? read.hash(reply.result, "eth_sendTransaction") : null };
    });
  } catch (error) {
    if (error instanceof RpcNotStarted) return NOT_STARTED;
    if (!(error instanceof RpcUnreachable || error instanceof BadAnswer)) throw error;
    return { answer: "unknown", detail: error.message, txHash: null };
  }
}

function toParameter(from: Address, transaction: UnsignedTransaction) {
  const { to, data, accessList } = transaction;
  const list = accessList.length === 0 ? undefined : accessList;
  return defined({ from, to: to ?? undefined, data, ...amountsInHex(transaction), accessList: list });
}
