/** What the owner of a lane reported that it alone knows, for explanations on other nodes. */
import type { ReportedFacts } from "../../domain/troubles/rows.ts";
import type { ExplainedChain, ExplainedLane, ExplainedTransaction } from "../../domain/troubles/situation.ts";
import type { TransactionRecord } from "../../ports/query-store.ts";
import type { SightStore } from "../../ports/sight-store.ts";
import { silent } from "./silent.ts";

interface Reported
  extends Pick<ExplainedLane, "signerAway">,
    Pick<ExplainedTransaction, "refusal">,
    Pick<ExplainedChain, "doubted" | "balance" | "minedCount"> {
  /** Nodes that do not reach the chain. */
  readonly unreachableFrom: readonly (string | null)[];
}

export const NOTHING_REPORTED: Reported = {
  ...{ signerAway: null, refusal: null, doubted: null, balance: null, minedCount: null, unreachableFrom: [] },
};

export async function reportedOf(
  store: Pick<SightStore, "reports">,
  { lane: { chainId, signer }, txId }: Pick<TransactionRecord, "lane" | "txId">,
): Promise<Reported> {
  const reports = (await silent(store.reports())) ?? [];
  const rows = reports.flatMap(({ findings }) => findings.filter((row) => row.chainId === chainId));
  const facts: ReportedFacts = Object.assign({}, ...rows.map((row) => (row.signer === signer ? row.facts : {})));
  const { signerAway: away, refusal, doubted = null, balance, minedCount = null } = facts;
  return {
    ...{ doubted, minedCount, balance: balance === undefined ? null : BigInt(balance) },
    signerAway: away ? { reason: away.reason, since: new Date(away.sinceMs) } : null,
    refusal: refusal?.txId === txId ? { ...refusal, since: new Date(refusal.sinceMs) } : null,
    unreachableFrom: rows.flatMap(({ code, nodeId }) => (code === "CHAIN_UNREACHABLE" ? [nodeId] : [])),
  };
}
