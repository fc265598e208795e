import type { Attention } from "../schemas/attention.ts";
import type { ClusterHistory } from "../schemas/cluster-history.ts";
import type { NonceRuler } from "../schemas/nonce-ruler.ts";
import type { AcknowledgeOrder, Notice, Notices } from "../schemas/notice.ts";
import type { Overview } from "../schemas/overview.ts";
import type { SearchResults } from "../schemas/search.ts";
import { created } from "./examples.ts";

const { txId, signer, chainId } = created;
const at = "2026-11-02T09:30:00.000Z";
const tracked = `/api/v1/tx/${txId}`;

const attention: Attention = {
  revision: "6b1f0c9d2e7a4358",
  asOf: at,
  items: [
    {
      id: `tx:${txId}`,
      severity: "ERROR",
      code: "FEE_BELOW_BASE_FEE",
      sentence: "STUCK at nonce 7: its fee cap is below what blocks ask for; 12 transactions wait behind it.",
      since: "2026-11-02T09:25:00.000Z",
      ...{ chainId, signer, txId, nonce: 7, nodeId: null, endpoint: null },
      waiting: 12,
      actions: [{ action: "reprice", label: "Offer more", method: "POST", path: `${tracked}/reprice`, body: {} }],
    },
  ],
  more: 0,
  past: [
    {
      id: "alert:DEEP_REORG 31337: ",
      severity: "CRITICAL",
      code: "DEEP_REORG",
      sentence: "Blocks that had been final left the chain: 2 outcomes are open again.",
      since: "2026-11-02T09:21:00.000Z",
      ...{ chainId, signer: null, txId: null, nonce: null, nodeId: "node-1", endpoint: null },
      ...{ waiting: 0, actions: [] },
    },
  ],
};

const overview: Overview = {
  revision: "0d4e8b7a91c2f653",
  asOf: at,
  lanes: 3,
  states: { CREATED: 0, ALLOCATED: 2, TRACKING: 14, STUCK: 1, CONFIRMED: 90_412, FAILED_FINAL: 7 },
  createdPerMinute: 61.4,
  completedPerMinute: 60.8,
  timeToFinalitySeconds: { p50: 26.1, p95: 31.9 },
  oldestPending: { txId, chainId, signer, nonce: 7, ageSeconds: 412 },
  chains: [
    {
      chainId,
      reachable: true,
      head: 1204,
      headSince: "2026-11-02T09:29:51.000Z",
      blockSeconds: 12,
      stalled: false,
      baseFee: "1000000000",
      tip: "1500000000",
      endpoints: [{ url: "https://rpc.example.org", status: "up", behind: 0 }],
      explorer: null,
    },
  ],
};

const searchResults: SearchResults = {
  items: [{ kind: "transaction", label: "order-42: CONFIRMED at nonce 7", txId, chainId, signer, nonce: 7 }],
};

const ruler: NonceRuler = {
  ...{ chainId, signer, from: 0, to: 9 },
  ...{ cursor: 10, mined: 7, final: 6 },
  spans: [
    { from: 0, to: 5, kind: "final" },
    { from: 6, to: 6, kind: "mined" },
    { from: 7, to: 7, kind: "stuck", txId },
    { from: 8, to: 9, kind: "queued" },
  ],
};

const notice: Notice = {
  noticeId: "5c1f9a70-1e6f-4a58-9d43-0c2b7f2f6a11",
  kind: "EXTERNAL_KEY_USE",
  ...{ chainId, signer, nodeId: null },
  ...{ firstSeenAt: "2026-11-02T09:20:00.000Z", lastSeenAt: "2026-11-02T09:24:00.000Z", times: 1 },
  evidence: [
    {
      at: "2026-11-02T09:24:00.000Z",
      ...{ nonce: 7, through: 7, txId },
      txHash: "0x6f1b4c2d8e3a5f7091b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718",
    },
  ],
  ...{ overAt: null, acknowledged: null },
};

const notices: Notices = { items: [notice] };

export const acknowledgeOrder: AcknowledgeOrder = { reason: "the finance team's own wallet, ticket 4711", times: 1 };

const acknowledged: Notice = {
  ...notice,
  acknowledged: { by: "operator:ada", at, why: acknowledgeOrder.reason },
};

const past: ClusterHistory = {
  takeovers: [{ chainId, signer, from: "node-a", to: "node-b", fencingToken: 4, why: "its heartbeat ran out", at }],
  nodes: [
    {
      nodeId: "node-b",
      instanceId: "019a4b7e-1111-7cc1-b1d2-3e4f5a6b7c8d",
      version: "0.1.0",
      startedAt: at,
      heartbeatAt: at,
      state: "alive",
    },
  ],
  database: [{ epoch: 1, systemIdentifier: "7301234567890123456", timeline: "1", mayHaveLost: false, seenAt: at }],
};

/** By the title of the schema. */
export const ANSWER_EXAMPLES = {
  Attention: attention,
  Overview: overview,
  SearchResults: searchResults,
  NonceRuler: ruler,
  Notices: notices,
  Notice: acknowledged,
  ClusterHistory: past,
};
