import { judgeAcknowledgement, type KeptOrder, type Notice } from "../../../domain/cluster/notices.ts";
import type { Acknowledged, NoticeStore } from "../../../ports/notice-store.ts";
import { bare } from "../rows/columns.ts";
import { ask, type Reading } from "../session/connections.ts";
import { type DurableRuntime, durably } from "../session/durably.ts";
import {
  boundNotices,
  forgetNotices,
  listNotices,
  lockNotice,
  markAcknowledged,
  type NoticeRow,
  readNotice,
} from "../statements/notice.ts";

/** Acknowledgements do not wait behind creates and moves, as orders to stop do not. */
export function noticesIn(reading: Reading, leasing: DurableRuntime): NoticeStore {
  return {
    async notices({ signer = null, chainId = null, open = false, limit }) {
      return (await ask(reading, listNotices, [limit, signer, chainId, open])).map(noticeOf);
    },
    async notice(noticeId) {
      const [row] = await ask(reading, readNotice, [noticeId]);
      return row === undefined ? null : noticeOf(row);
    },
    markAcknowledged: (order) =>
      durably<readonly NoticeRow[], Acknowledged | null>(leasing, {
        statements: 1,
        waits: 1,
        find: (run) => run(lockNotice, [order.noticeId]),
        decide: ([row], { now }) => {
          if (row === undefined) return { commands: [], result: null, rollback: true };
          const notice = noticeOf(row);
          const verdict = judgeAcknowledgement(notice, orderOf(row), order);
          if (verdict !== "acknowledge") return { commands: [], result: { verdict, notice }, rollback: true };
          const { noticeId, by, why, order: named } = order;
          const words = named === null ? null : bare(named.fingerprint);
          const commands = [
            { statement: markAcknowledged, values: [noticeId, by, why, named?.key ?? null, words] },
            { statement: boundNotices, values: [noticeId] },
          ];
          return { commands, result: { verdict, notice: { ...notice, acknowledged: { by, why, at: now } } } };
        },
      }),
    forgetNotices: (ageMs, most) =>
      durably(leasing, {
        statements: 1,
        waits: 1,
        find: (run) => run(forgetNotices, [ageMs, most]),
        decide: (gone) => ({ commands: [], result: gone.length, rollback: gone.length === 0 }),
      }),
  };
}

export function noticeOf(row: NoticeRow): Notice {
  const { noticeId, kind, chainId, signer, nodeId, firstSeenAt, lastSeenAt, times, overAt, evidence } = row;
  const { acknowledgedAt: at, acknowledgedBy: by, acknowledgedWhy: why } = row;
  return {
    ...{ noticeId, kind, nodeId, firstSeenAt, lastSeenAt, times, overAt },
    lane: chainId === null || signer === null ? null : { chainId, signer },
    evidence: evidence.map((each) => ({ ...each, at: new Date(each.at) })),
    acknowledged: at === null || by === null || why === null ? null : { by, at, why },
  };
}

function orderOf({ acknowledgedKey: key, acknowledgedWords: fingerprint }: NoticeRow): KeptOrder | null {
  return key === null || fingerprint === null ? null : { key, fingerprint };
}
