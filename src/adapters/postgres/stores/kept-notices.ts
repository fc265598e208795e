import { judgeAcknowledgement, type KeptActionKey, type Notice } from "../../../domain/cluster/notices.ts";
import type { Acknowledged, NoticeStore } from "../../../ports/notice-store.ts";
import { bare } from "../rows/columns.ts";
import { ask, type Reading } from "../session/connections.ts";
import { type DurableRuntime, durably } from "../session/durably.ts";
import type { Decision } from "../session/write-transaction.ts";
import * as sql from "../statements/notice.ts";
import { writeRows } from "./leases.ts";

/**
 * Implements NoticeStore. Like kills, acknowledgements use the lease's connections, so that they do not wait behind
 * creates and transitions.
 */
export function noticesIn(reading: Reading, leasing: DurableRuntime): NoticeStore {
  return {
    async notices({ signer = null, chainId = null, open = false, limit }) {
      return (await ask(reading, sql.listNotices(limit, signer, chainId, open))).map(noticeOf);
    },
    async notice(noticeId) {
      const [row] = await ask(reading, sql.readNotice(noticeId));
      return row === undefined ? null : noticeOf(row);
    },
    markAcknowledged: (asked) =>
      durably(leasing, {
        waits: 1,
        find: [sql.lockNotice(asked.noticeId)],
        decide: ([[row]], { now }): Decision<Acknowledged | null> => {
          if (row === undefined) return { commands: null, result: null };
          const notice = noticeOf(row);
          const verdict = judgeAcknowledgement(notice, keyOf(row), asked);
          if (verdict !== "acknowledge") return { commands: null, result: { verdict, notice } };
          const { noticeId, by, why, actionKey: named } = asked;
          const words = named === null ? null : bare(named.fingerprint);
          const acknowledged = sql.markAcknowledged(noticeId, by, why, named?.key, words);
          return {
            commands: [acknowledged, sql.boundNotices(noticeId)],
            result: { verdict, notice: { ...notice, acknowledged: { by, why, at: now } } },
          };
        },
      }),
    forgetNotices: async (...limits) => (await writeRows(leasing, sql.forgetNotices(...limits))).length,
  };
}

export function noticeOf({ chainId, signer, evidence, ...row }: sql.NoticeRow): Notice {
  const {
    acknowledgedAt: at,
    acknowledgedBy: by,
    acknowledgedWhy: why,
    acknowledgedKey,
    acknowledgedWords,
    ...notice
  } = row;
  return {
    ...notice,
    lane: chainId === null || signer === null ? null : { chainId, signer },
    evidence: evidence.map((each) => ({ ...each, at: new Date(each.at) })),
    acknowledged: at === null || by === null || why === null ? null : { by, at, why },
  };
}

function keyOf({ acknowledgedKey: key, acknowledgedWords: fingerprint }: sql.NoticeRow): KeptActionKey | null {
  return key === null || fingerprint === null ? null : { key, fingerprint };
}
