/**
 * A person's question to the chain about one transaction: its logs, and why it reverted. It is asked of one endpoint, a few at
 * once and each once in a few seconds, so that a page that is left open, or a key that asks in a loop, costs an endpoint next
 * to nothing. Nothing is stored, and nothing is decided by the answer.
 */
import { FencepostError } from "../../domain/errors.ts";
import { ChainUnavailable, unlessSilent } from "../../ports/chain.ts";
import { within } from "../../ports/clock.ts";
import type { TransactionRecord } from "../../ports/query-store.ts";
import type { OutcomeQuestion } from "../../ports/shown-outcome.ts";
import type { ChainLook } from "../api.ts";
import { Answers } from "../chain/answers.ts";
import type { CallPorts } from "../chain/work-ports.ts";

const ANSWERED_WITHIN_MS = 5_000;
const KEPT_FOR_MS = 5_000;
const MOST_KEPT = 100;
const MOST_AT_ONCE = 4;

/** QUEUE_FULL if too many are being answered. */
export function chainLooks({ clock, chains }: Pick<CallPorts, "clock" | "chains">) {
  const kept = new Answers<string, ChainLook>(clock, MOST_KEPT);
  let underWay = 0;
  const nothing = (kind: ChainLook["kind"]): ChainLook => {
    return { kind, askedAt: clock.now(), blockHash: null, logs: [], more: 0, revert: null };
  };
  const late = () => {
    throw new ChainUnavailable("no answer in time");
  };
  const ask = async (record: TransactionRecord, blockHash: string): Promise<ChainLook> => {
    const context = chains.get(record.lane.chainId);
    const question = questionOf(record);
    if (context === undefined || question === null) return nothing("silent");
    const asked = within(clock, context.chain.outcome(question), { ms: ANSWERED_WITHIN_MS, late });
    const outcome = await unlessSilent(asked, "silent" as const);
    if (outcome === "silent") return nothing(outcome);
    if (outcome === null) return nothing("unknown");
    if (outcome.blockHash !== blockHash) return nothing("differs");
    return { kind: "shown", askedAt: clock.now(), ...outcome };
  };
  return async (record: TransactionRecord): Promise<ChainLook> => {
    const { txId, receipt } = record;
    if (receipt === null) return nothing("unmined");
    return kept.about(`${txId} ${receipt.blockHash}`, KEPT_FOR_MS, async () => {
      if (underWay >= MOST_AT_ONCE) {
        const detail = "the chain is being asked about as many transactions as may be at once: ask again in a moment";
        throw new FencepostError("QUEUE_FULL", detail, { retryAfterSeconds: 1 });
      }
      underWay++;
      try {
        return await ask(record, receipt.blockHash);
      } finally {
        underWay--;
      }
    });
  };
}

/** The call is known only if the payload that was mined is the caller's. */
function questionOf({ lane, payload, receipt, attempts, gas }: TransactionRecord): OutcomeQuestion | null {
  if (receipt === null) return null;
  const { txHash, blockNumber, status } = receipt;
  const mined = attempts.find((attempt) => attempt.txHash === txHash);
  const isCallers = mined?.foreign !== true && (mined?.kind === "initial" || mined?.kind === "reprice");
  if (status !== "reverted" || !isCallers || blockNumber === 0) return { txHash, replay: null };
  const { to, data, value } = payload;
  const call = { from: lane.signer, to, data, value, gas: mined.gas ?? gas ?? undefined };
  return { txHash, replay: { call, onBlock: blockNumber - 1 } };
}
