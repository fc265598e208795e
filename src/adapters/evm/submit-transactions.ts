import { numberToHex } from "viem/utils";
import { SUBMIT_ANSWERS, type SubmitResult } from "../../domain/answers.ts";
import { defined } from "../../domain/defined.ts";
import type { Address, Hex } from "../../domain/lane.ts";
import type { UnsignedTransaction } from "../../domain/transaction.ts";
import type { NodeSubmission } from "../../ports/chain.ts";
import { classifySubmission, namedGasCap } from "./classify-submission.ts";
import { shorten } from "./error-texts.ts";
import type { Endpoint, Endpoints } from "./rpc/endpoints.ts";
import { BadAnswer, read } from "./rpc/quantities.ts";
import { type RpcErrorAnswer, type RpcReply, RpcUnreachable } from "./rpc/rpc-errors.ts";

/** What one endpoint made of one item. `lost` = it gave no answer at all; the same bytes may be handed to another. */
interface Submission {
  readonly result: SubmitResult;
  readonly lost: RpcUnreachable | null;
}

/** To every endpoint that is up. */
export async function submitEverywhere(endpoints: Endpoints, raws: readonly Hex[]): Promise<readonly SubmitResult[]> {
  const all = await Promise.all(endpoints.usable().map((endpoint) => submitTo(endpoints, endpoint, raws)));
  return raws.map((_, index) => concluded(all.flatMap((each) => each[index] ?? [])));
}

/**
 * What one endpoint lost, or refused for good, goes to the next: the bytes are claimed already, so a repetition changes
 * nothing, and one node's mood decides nothing.
 */
export async function submitToFirst(endpoints: Endpoints, raws: readonly Hex[]): Promise<readonly SubmitResult[]> {
  const items = raws.map((raw) => ({ raw, said: [] as Submission[] }));
  for (const endpoint of endpoints.usable()) {
    const open = items.filter(({ said }) => isOpen(said));
    if (open.length === 0) break;
    const left = open.map(({ raw }) => raw);
    const submissions = await submitTo(endpoints, endpoint, left);
    for (const [at, { said }] of open.entries()) said.push(submissions[at] as Submission);
  }
  return items.map(({ said }) => concluded(said));
}

/** In order. Never throws. */
async function submitTo(endpoints: Endpoints, endpoint: Endpoint, raws: readonly Hex[]) {
  try {
    return await endpoints.askOne(endpoint, async (rpc) => {
      const calls = raws.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] }));
      const submissions = (await rpc.sendInOrder(calls)).map(readHashReply);
      const [first] = submissions;
      // Reported to the endpoint's health only; what did get an answer is kept.
      if (first?.lost && submissions.every(({ lost }) => lost !== null)) throw first.lost;
      return submissions;
    });
  } catch (error) {
    if (error instanceof RpcUnreachable) return raws.map(() => lostSubmission(error));
    if (!(error instanceof BadAnswer)) throw error;
    const lost = new RpcUnreachable("malformed", `${endpoint.rpc.label}: ${error.message}`, { cause: error });
    return raws.map(() => lostSubmission(lost));
  }
}

function lostSubmission(error: RpcUnreachable): Submission {
  return { result: { answer: "unknown", detail: shorten(error.message) }, lost: error };
}

/** Of a call whose good answer is a transaction hash. */
function readHashReply(reply: RpcReply): Submission {
  if (reply.ok) return { result: readAcceptance(reply.result), lost: null };
  if (reply.error instanceof RpcUnreachable) return lostSubmission(reply.error);
  return { result: readRefusal(reply.error), lost: null };
}

function readAcceptance(result: unknown): SubmitResult {
  if (typeof result === "string" && HASH.test(result)) return { answer: "accepted", detail: null };
  return { answer: "unknown", detail: "the node answered with something that is no transaction hash" };
}

function readRefusal(error: RpcErrorAnswer): SubmitResult {
  const words = error.message === "" ? `error ${error.code} without words` : error.message;
  const result: SubmitResult = { answer: classifySubmission(error), detail: shorten(words) };
  const gasCap = result.answer === "rejected" ? namedGasCap(error) : null;
  return gasCap === null ? result : { ...result, gasCap };
}

const HASH = /^0x[0-9a-f]{64}$/i;

/** Whether another endpoint should be asked: none has answered yet, or one alone has refused it for good. */
function isOpen(said: readonly Submission[]): boolean {
  const words = said.filter(({ lost }) => lost === null);
  return words.length === 0 || (words.length === 1 && words[0]?.result.answer === "rejected");
}

/**
 * What several endpoints said to one item, in the order asked. A refusal for good that an endpoint which should be up has
 * not confirmed does not count: it is asked again until that one answers, or is known to be down.
 */
function concluded(said: readonly Submission[]): SubmitResult {
  const refusal = said.find(({ result }) => result.answer === "rejected")?.result;
  // A second one was not given what comes before, and so cannot judge whether it is too early.
  const relevant = said.filter(({ result }) => refusal === undefined || result.answer !== "nonceTooHigh");
  const result = weightiest(relevant.map((each) => each.result));
  const silent = said.find(({ lost }) => lost !== null)?.lost;
  if (result.answer !== "rejected") return result;
  if (silent === undefined || silent === null) return withAgreedCap(result, said);
  const detail = shorten(`refused (${result.detail ?? "without words"}), and not confirmed: ${silent.message}`);
  return { answer: "unknown", detail };
}

/** A gas cap counts where every endpoint that was asked named one, and then the highest: one alone lowers nothing. */
function withAgreedCap({ answer, detail }: SubmitResult, said: readonly Submission[]): SubmitResult {
  const caps = said.map(({ result }) => result.gasCap ?? null);
  const highest = caps.reduce((most, cap) => (most === null || cap === null ? null : cap > most ? cap : most));
  return highest === null || highest === undefined ? { answer, detail } : { answer, detail, gasCap: highest };
}

/** The most telling of what several endpoints said to one item. */
function weightiest(answers: readonly SubmitResult[]): SubmitResult {
  const [first] = answers.toSorted((a, b) => SUBMIT_ANSWERS.indexOf(a.answer) - SUBMIT_ANSWERS.indexOf(b.answer));
  return first ?? { answer: "unknown", detail: "no endpoint could be asked" };
}

/** `eth_sendTransaction`, with every field given: the node adds its signature and nothing else. */
export async function sendUnsigned(
  endpoints: Endpoints,
  from: Address,
  transaction: UnsignedTransaction,
): Promise<NodeSubmission> {
  const [endpoint] = endpoints.usable();
  if (endpoint === undefined) return { ...weightiest([]), txHash: null };
  const calls = [{ method: "eth_sendTransaction", params: [toParameter(from, transaction)] }];
  try {
    return await endpoints.askOne(endpoint, async (rpc) => {
      const [reply] = await rpc.sendInOrder(calls);
      if (reply === undefined) throw new RpcUnreachable("malformed", "a call was left unanswered");
      const { result, lost } = readHashReply(reply);
      if (lost !== null) throw lost;
      const isTaken = reply.ok && result.answer === "accepted";
      return { ...result, txHash: isTaken ? read.hash(reply.result, "eth_sendTransaction") : null };
    });
  } catch (error) {
    if (!(error instanceof RpcUnreachable || error instanceof BadAnswer)) throw error;
    return { answer: "unknown", detail: error.message, txHash: null };
  }
}

function toParameter(from: Address, { to, data, fees, accessList, ...amounts }: UnsignedTransaction) {
  const { type: _, ...prices } = fees;
  const inHex = Object.entries({ ...amounts, ...prices }).map(([name, amount]) => [name, numberToHex(amount)]);
  const list = accessList.length === 0 ? undefined : accessList;
  return defined({ from, to: to ?? undefined, data, ...Object.fromEntries(inHex), accessList: list });
}
