import type { AttentionView, ChainView, Found, NonceRulerView, OverviewView } from "../../application/sight-api.ts";
import type { Attention, AttentionItem } from "../../contract/attention.ts";
import type { ClusterHistory } from "../../contract/cluster-history.ts";
import type { NonceRuler } from "../../contract/nonce-ruler.ts";
import type { Notice as ContractNotice } from "../../contract/notice.ts";
import type { Overview } from "../../contract/overview.ts";
import type { SearchResults } from "../../contract/search.ts";
import type { Checksum } from "../../domain/checksum.ts";
import type { Notice } from "../../domain/notices.ts";
import type { Trouble } from "../../domain/troubles/rows.ts";
import type { ClusterPast } from "../../ports/sight-store.ts";

/** What is seen of everything at once, in the contract's terms. */

export function attentionView({ asOf, items, past, ...rest }: AttentionView, checksum: Checksum): Attention {
  const shown = (troubles: readonly Trouble[]) => troubles.map((each) => itemView(each, checksum));
  return { ...rest, asOf: asOf.toISOString(), items: shown(items), past: shown(past) };
}

function itemView(row: Trouble, checksum: Checksum): AttentionItem {
  const { since, asOf, signer, actions, over: _, facts: __, ...item } = row;
  return {
    ...item,
    since: since?.toISOString() ?? null,
    ...(asOf && { asOf: asOf.toISOString() }),
    signer: signer && checksum(signer),
    actions: actions.map((action) => ({ ...action, body: action.body && { ...action.body } })),
  };
}

export function overviewView(view: OverviewView, checksum: Checksum): Overview {
  const { asOf, oldestPending: oldest, chains, ...rest } = view;
  return {
    ...rest,
    asOf: asOf.toISOString(),
    oldestPending: oldest && {
      txId: oldest.txId,
      chainId: oldest.lane.chainId,
      signer: checksum(oldest.lane.signer),
      nonce: oldest.nonce,
      // Never negative: clocks differ.
      ageSeconds: Math.max(0, Math.round((asOf.getTime() - oldest.createdAt.getTime()) / 1000)),
    },
    chains: chains.map(chainView),
  };
}

function chainView({ baseFee, tip, endpoints, headSince, ...chain }: ChainView): Overview["chains"][number] {
  const wei = (value: bigint | null) => (value === null ? null : value.toString());
  return {
    ...chain,
    headSince: headSince?.toISOString() ?? null,
    baseFee: wei(baseFee),
    tip: wei(tip),
    endpoints: [...endpoints],
  };
}

export function searchView(found: readonly Found[], checksum: Checksum): SearchResults {
  return { items: found.map((each) => (each.signer ? { ...each, signer: checksum(each.signer) } : { ...each })) };
}

export function nonceRulerView({ lane, spans, ...ruler }: NonceRulerView, checksum: Checksum): NonceRuler {
  return { chainId: lane.chainId, signer: checksum(lane.signer), ...ruler, spans: [...spans] };
}

export function noticeView({ lane, evidence, acknowledged, ...notice }: Notice, checksum: Checksum): ContractNotice {
  const { firstSeenAt, lastSeenAt, overAt } = notice;
  return {
    ...notice,
    chainId: lane?.chainId ?? null,
    signer: lane && checksum(lane.signer),
    firstSeenAt: firstSeenAt.toISOString(),
    lastSeenAt: lastSeenAt.toISOString(),
    overAt: overAt?.toISOString() ?? null,
    evidence: evidence.map(({ at, ...each }) => ({ at: at.toISOString(), ...each })),
    acknowledged: acknowledged && { ...acknowledged, at: acknowledged.at.toISOString() },
  };
}

export function clusterHistoryView({ takeovers, nodes, database }: ClusterPast, checksum: Checksum): ClusterHistory {
  return {
    takeovers: takeovers.map(({ lane, from, to, token, why, at }) => {
      const where = { chainId: lane.chainId, signer: checksum(lane.signer) };
      return { ...where, from, to, fencingToken: token, why, at: at.toISOString() };
    }),
    nodes: nodes.map(({ startedAt, heartbeatAt, ...node }) => {
      return { ...node, startedAt: startedAt.toISOString(), heartbeatAt: heartbeatAt.toISOString() };
    }),
    database: database.map(({ seenAt, ...past }) => ({ ...past, seenAt: seenAt.toISOString() })),
  };
}
