import { Costs, CostsQuery, History, HistoryQuery } from "../schemas/figures.ts";
import { declared, ok, READ } from "./call.ts";

/** Figures over time. A key that is limited to signers or chains gets those of its lanes. */
export const statistics = declared({
  getHistory: {
    at: "get /api/v1/history",
    scope: READ,
    face: "history",
    summary: "Figures over time",
    description:
      "From buckets that nodes write every few seconds: minutes for a day, then hours. Statistics: a node that crashes loses its last seconds. Exact amounts: `GET /costs`.",
    query: HistoryQuery,
    answers: ok("Merged over the selected lanes.", History),
    errors: ["UNKNOWN_CHAIN"],
  },
  getCosts: {
    at: "get /api/v1/costs",
    scope: READ,
    face: "costsPage",
    does: "costs",
    summary: "Fees paid and value moved",
    description:
      "Exact, from the receipts of the transactions that were created in the range and are still kept. Up to 20,000 transactions a call.",
    query: CostsQuery,
    answers: ok("By group and chain.", Costs),
    errors: ["UNKNOWN_CHAIN"],
  },
});
