import type { SubmitAnswer, SubmitResult } from "../../domain/answers.ts";
import type { Hex } from "../../domain/lane.ts";
import { classifySubmission, namedGasCap } from "./classify-submission.ts";
import { shorten } from "./error-texts.ts";
import { type RpcErrorAnswer, type RpcReply, RpcUnreachable } from "./rpc/rpc-errors.ts";
import type { RpcTransport } from "./rpc/transport.ts";

/** What one endpoint made of one item. `lost` = it gave no answer at all; the same bytes may be handed to another. */
export interface Submission {
  readonly result: SubmitResult;
  readonly lost: RpcUnreachable | null;
}

/** Sends in order through one endpoint. Never throws. */
export async function submitThrough(
  rpc: RpcTransport,
  rawTransactions: readonly Hex[],
): Promise<readonly Submission[]> {
  const replies = await rpc.sendInOrder(
    rawTransactions.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] })),
  );
  return replies.map(readHashReply);
}

export function lostSubmission(error: RpcUnreachable): Submission {
  return { result: { answer: "unknown", detail: shorten(error.message) }, lost: error };
}

/** Of a call whose good answer is a transaction hash. */
export function readHashReply(reply: RpcReply): Submission {
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

/**
 * From most to least telling. A node that holds the payload outweighs every refusal elsewhere; among refusals, those
 * that leave a way on come before the final one; any word outweighs silence.
 */
const WEIGHT: Readonly<Record<SubmitAnswer, number>> = {
  accepted: 0,
  alreadyKnown: 1,
  nonceConsumed: 2,
  nonceTooHigh: 3,
  underpriced: 4,
  insufficientFunds: 5,
  rejected: 6,
  unknown: 7,
};

/** Whether another endpoint should be asked: none has answered yet, or one alone has refused it for good. */
export function isOpen(said: readonly Submission[]): boolean {
  const words = said.filter(({ lost }) => lost === null);
  return words.length === 0 || (words.length === 1 && words[0]?.result.answer === "rejected");
}

/**
 * What several endpoints said to one item, in the order asked. A refusal for good that an endpoint which should be up has
 * not confirmed does not count: it is asked again until that one answers, or is known to be down.
 */
export function concluded(said: readonly Submission[]): SubmitResult {
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
export function weightiest(answers: readonly SubmitResult[]): SubmitResult {
  const [first, ...others] = answers;
  if (first === undefined) return { answer: "unknown", detail: "no endpoint could be asked" };
  return others.reduce((best, each) => (WEIGHT[each.answer] < WEIGHT[best.answer] ? each : best), first);
}
