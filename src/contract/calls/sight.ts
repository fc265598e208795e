import { Attention, AttentionQuery } from "../schemas/attention.ts";
import { ClusterHistory, ClusterHistoryQuery } from "../schemas/cluster-history.ts";
import { NonceRuler, NonceRulerQuery } from "../schemas/nonce-ruler.ts";
import { AcknowledgeOrder, Notice, Notices, NoticesQuery } from "../schemas/notice.ts";
import { Overview, OverviewQuery } from "../schemas/overview.ts";
import { SearchQuery, SearchResults } from "../schemas/search.ts";
import { ACTION_HEADERS, declared, OPERATE, ok, READ, TRANSACTION_BYTES } from "./call.ts";

/** Overviews for operators, across all lanes and nodes. None of these calls reads a chain. */
export const sight = declared({
  getAttention: {
    at: "get /api/v1/attention",
    scope: READ,
    face: "attention",
    summary: "What needs a person, worst first",
    description:
      "Every trouble with one sentence and the requests that help. With `revision` of the answer before and `wait`, the answer is held until the list is another one. Of what only nodes know (endpoints, signers, balances) it shows what each has reported.",
    query: AttentionQuery,
    answers: ok("Now.", Attention),
  },
  getOverview: {
    at: "get /api/v1/overview",
    scope: READ,
    face: "overview",
    summary: "Everything in figures",
    description:
      "With `revision` of the answer before and `wait`, the answer is held until a figure is another one. For a key that is limited to signers or chains, rates are null and the rest is of what it may see.",
    query: OverviewQuery,
    answers: ok("Now.", Overview),
  },
  search: {
    at: "get /api/v1/search",
    scope: READ,
    face: "search",
    summary: "Find by any id",
    description: "Exactly, or by how it begins: never in the middle.",
    query: SearchQuery,
    answers: ok("Best first.", SearchResults),
  },
  getNonceRuler: {
    at: "get /api/v1/signers/{signer}/nonces",
    scope: READ,
    face: "nonceRuler",
    summary: "A signer's nonces, by what holds them",
    query: NonceRulerQuery,
    answers: ok("At most 2,000 nonces.", NonceRuler),
    errors: ["UNKNOWN_SIGNER", "UNKNOWN_CHAIN"],
  },
  listNotices: {
    at: "get /api/v1/notices",
    scope: READ,
    face: "notices",
    summary: "What happened once and waits for a person's word",
    description:
      "A use of a key that was not sent from here, and a node that vanished without draining: each stays among what needs attention until somebody acknowledges it, or the node is back. Acknowledged ones are kept with who, when and why. A key that is limited to signers or chains sees those about its lanes.",
    query: NoticesQuery,
    answers: ok("Newest first.", Notices),
  },
  acknowledgeNotice: {
    at: "post /api/v1/notices/{noticeId}/acknowledge",
    scope: OPERATE,
    face: "acknowledge",
    takes: ["action"],
    summary: "Say that a notice was looked into",
    description:
      "Needs `operate`. Kept with the name of the key, the time and the reason. The same again is another notice. Twice under one key is once; where somebody else acknowledged it, or it has happened again since `times`, nothing is done (409).",
    headers: ACTION_HEADERS,
    body: AcknowledgeOrder,
    bodyBytes: TRANSACTION_BYTES,
    answers: ok("Acknowledged.", Notice),
    errors: ["NOT_FOUND", "CONFLICT", "REQUEST_ID_REUSED"],
  },
  getClusterHistory: {
    at: "get /api/v1/cluster/history",
    scope: READ,
    face: "clusterHistory",
    summary: "What became of nodes, lanes and the database",
    query: ClusterHistoryQuery,
    answers: ok("Newest first.", ClusterHistory),
  },
});
