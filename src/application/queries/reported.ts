/** What the owner of a lane reported that it alone knows, for explanations on other nodes. */
import type { Trouble } from "../../domain/troubles/rows.ts";
import type { ExplainedChain, ExplainedLane, ExplainedTransaction } from "../../domain/troubles/situation.ts";
import type { RefusalWait } from "../../domain/unconfirmed-refusal.ts";
import type { TransactionRecord } from "../../ports/query-store.ts";
import type { SightStore } from "../../ports/sight-store.ts";
import { silent } from "./silent.ts";

interface Reported
  extends Pick<ExplainedLane, "signerAway">,
    Pick<ExplainedTransaction, "refusal">,
    Pick<ExplainedChain, "doubted" | "balance" | "minedCount"> {
  /** Nodes that do not reach the chain. */
  readonly unreachableFrom: readonly string[];
}

export const NOTHING_REPORTED: Reported = {
  ...{ signerAway: null, refusal: null, doubted: null, balance: null, minedCount: null, unreachableFrom: [] },
};

export async function reportedOf(
  { store }: { readonly store: Pick<SightStore, "reports"> },
  { lane, txId }: Pick<TransactionRecord, "lane" | "txId">,
): Promise<Reported> {
  const reports = (await silent(store.reports())) ?? [];
  const rows = reports.flatMap(({ findings, ended }) => (ended ? [] : findings));
  const onLane = rows.filter((row) => row.chainId === lane.chainId && row.signer === lane.signer);
  const factsOf = (is: (row: Trouble) => boolean) => onLane.find((row) => row.facts !== undefined && is(row));
  const away = factsOf(({ code }) => code === "SIGNER_AWAY" || code === "SIGNER_LIES");
  const refused = factsOf(({ facts, txId: id }) => facts?.refusal !== undefined && id === txId);
  const figures = factsOf(({ facts }) => facts?.minedCount !== undefined || facts?.balance !== undefined)?.facts;
  const refusal = refused?.facts?.refusal;
  return {
    signerAway: away?.since ? { since: away.since, reason: away.facts?.reason ?? "" } : null,
    refusal:
      refusal && refused?.since
        ? { ...refusal, waitsFor: refusal.waitsFor as RefusalWait, since: refused.since }
        : null,
    doubted: factsOf(({ code }) => code === "CHAIN_DOUBTED")?.facts?.reason ?? null,
    balance: figures?.balance === undefined ? null : BigInt(figures.balance),
    minedCount: figures?.minedCount ?? null,
    unreachableFrom: rows.flatMap(({ code, chainId, nodeId }) =>
      code === "CHAIN_UNREACHABLE" && chainId === lane.chainId && nodeId !== null ? [nodeId] : [],
    ),
  };
}
