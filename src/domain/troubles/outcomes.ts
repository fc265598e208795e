/** Causes of what is over or only a matter of depth: decided, or mined and on its way to final. */
import type { Cause, Situation } from "./situation.ts";
import type { CauseCode } from "./table.ts";

/** Null: not settled. */
export function settledCause({ transaction, chain }: Situation): Cause | null {
  const { state, subState, receipt, attempts } = transaction;
  if (state !== "CONFIRMED" && state !== "FAILED_FINAL") return null;
  const at = receipt === null ? "" : ` in block ${receipt.blockNumber}`;
  const code = (subState ?? "CONFIRMED") as CauseCode;
  const texts: Partial<Record<CauseCode, string>> = {
    CONFIRMED: `mined${at} and final`,
    REPLACED: `its replacement was mined${at} and is final`,
    REVERTED: `mined${at}, where it reverted; the outcome is final`,
    CANCELLED:
      receipt === null && transaction.nonce === null
        ? `cancelled before it had a nonce: ${transaction.reason ?? "no reason was kept"}`
        : `cancelled: a transaction without effect was mined at its nonce${at}`,
    EXPIRED: `given up${at}: ${transaction.reason ?? "its time was over"}`,
    NONCE_CONSUMED_EXTERNALLY: `its nonce ${transaction.nonce} was used by a transaction that was not sent from here${at}`,
    REJECTED: `refused before anything of it was sent: ${transaction.reason ?? transaction.lastError ?? "no reason was kept"}`,
    REQUEST_ID_REUSED: "its request id belongs to another payload",
  };
  const foreign = attempts.find((attempt) => attempt.foreign === true)?.txHash ?? receipt?.txHash ?? null;
  const cause: Cause = { code, text: texts[code] ?? `settled as ${code}`, since: transaction.since };
  const data = { chainId: chain.chainId, txHash: foreign };
  return code === "NONCE_CONSUMED_EXTERNALLY" ? { ...cause, data } : cause;
}

/** Null: not mined. */
export function minedCause({ transaction, chain }: Situation): Cause | null {
  const { receipt, subState } = transaction;
  if (subState !== "MINED" || receipt === null) return null;
  const { blockNumber, txHash } = receipt;
  if (transaction.attempts.some((attempt) => attempt.txHash === txHash && attempt.foreign === true)) {
    const text = `nonce ${transaction.nonce} was used by ${txHash}, which was not sent from here; once that is final, so is this`;
    return { code: "NONCE_USED_BY_OTHERS", text, data: { txHash, blockNumber } };
  }
  if (chain.finality !== "confirmations") {
    const text = `mined in block ${blockNumber}; final once the chain's ${chain.finality} tag reaches it`;
    return { code: "WAITING_FOR_FINALITY_TAG", text, data: { blockNumber, head: chain.head } };
  }
  const on = chain.head === null ? null : Math.max(0, chain.head - blockNumber);
  const progress = on === null ? "" : `, ${on} of ${chain.confirmations} blocks on top of it`;
  return {
    code: "WAITING_FOR_CONFIRMATIONS",
    text: `mined in block ${blockNumber}${progress}`,
    data: { blockNumber, confirmations: on, needed: chain.confirmations },
  };
}

/** Null: nothing keeps its receipt from deciding, or, before it is mined, makes its price doubtful. */
export function disputedCause({ transaction: { receipt }, chain: { disputed } }: Situation): Cause | null {
  if (disputed === null) return null;
  const { code, answers, since } = disputed;
  if (receipt === null) {
    const text = `what the chain's endpoints say of the price of gas cannot all be true, so the lower price is offered first and raised while blocks pass it over: ${answers.join("; ")}`;
    return { code, text, ...(since === null ? {} : { since }) };
  }
  const block = `block ${receipt.blockNumber}`;
  const why =
    code === "RPC_BEHIND"
      ? `an endpoint that is up has not said for a minute what ${block} holds, and no outcome rests on another one alone`
      : `what the chain's endpoints say of ${block} cannot all be true, so it decides nothing`;
  const data = { blockNumber: receipt.blockNumber, txHash: receipt.txHash };
  return { code, text: `${why}: ${answers.join("; ")}`, ...(since === null ? {} : { since }), data };
}
