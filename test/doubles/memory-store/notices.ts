import { randomUUID } from "node:crypto";
import {
  type Acknowledgement,
  isVanished,
  judgeAcknowledgement,
  type KeptActionKey,
  MOST_ACKNOWLEDGED,
  MOST_EVIDENCE,
  type Notice,
  type NoticeEvidence,
} from "../../../src/domain/cluster/notices.ts";
import { type Lane, laneKey } from "../../../src/domain/lane.ts";
import type { Acknowledged, NoticeFilter } from "../../../src/ports/notice-store.ts";
import type { DatabaseState } from "./state.ts";

export interface NoticeEntry {
  readonly notice: Notice;
  readonly actionKey: KeptActionKey | null;
}

type Occurrence = Pick<Notice, "kind" | "lane" | "nodeId" | "times"> & { readonly evidence: NoticeEvidence };

/** Counts an occurrence on the open notice, or opens a new one. */
export function occurred(state: DatabaseState, { evidence, ...what }: Occurrence): Notice {
  const { at } = evidence;
  const open = [...state.notices.values()].find(({ notice }) => isOpen(notice) && isAbout(notice, what))?.notice;
  const notice: Notice =
    open === undefined
      ? {
          ...{ noticeId: randomUUID(), ...what, firstSeenAt: at, lastSeenAt: at },
          ...{ evidence: [evidence], overAt: null, acknowledged: null },
        }
      : {
          ...{ ...open, lastSeenAt: at, times: open.times + what.times },
          evidence: [evidence, ...open.evidence].slice(0, MOST_EVIDENCE),
        };
  return notice;
}

function isAbout(notice: Notice, { kind, lane, nodeId }: Pick<Notice, "kind" | "lane" | "nodeId">): boolean {
  const key = (of: Lane | null) => (of === null ? null : laneKey(of));
  return notice.kind === kind && key(notice.lane) === key(lane) && notice.nodeId === nodeId;
}

export function vanished(state: DatabaseState, instanceId: string, { at, why }: { at: Date; why: string }): void {
  const row = state.instances.get(instanceId);
  const lanes = [...state.lanes.values()].filter(({ owner }) => owner === instanceId).length;
  if (row === undefined || !isVanished({ draining: row.draining, lanes })) return;
  const evidence = { at, instanceId, why, lanes };
  keep(state, occurred(state, { kind: "NODE_VANISHED", lane: null, nodeId: row.nodeId, times: 1, evidence }));
}

export function returned(state: DatabaseState, nodeId: string, overAt: Date): void {
  for (const { notice } of state.notices.values()) {
    if (notice.kind === "NODE_VANISHED" && notice.nodeId === nodeId && isOpen(notice))
      keep(state, { ...notice, overAt });
  }
}

function keep(state: DatabaseState, notice: Notice, actionKey: KeptActionKey | null = null): void {
  state.notices.set(notice.noticeId, { notice, actionKey });
}

export function listNotices(state: DatabaseState, { signer, chainId, open, limit }: NoticeFilter): readonly Notice[] {
  return [...state.notices.values()]
    .map(({ notice }) => notice)
    .filter(({ lane }) => signer === undefined || lane?.signer === signer)
    .filter(({ lane }) => chainId === undefined || lane?.chainId === chainId)
    .filter((notice) => open !== true || isOpen(notice))
    .sort((a, b) => b.lastSeenAt.getTime() - a.lastSeenAt.getTime() || (a.noticeId < b.noticeId ? -1 : 1))
    .slice(0, limit);
}

export function acknowledge(state: DatabaseState, asked: Acknowledgement, at: Date): Acknowledged | null {
  const entry = state.notices.get(asked.noticeId);
  if (entry === undefined) return null;
  const { notice, actionKey } = entry;
  const verdict = judgeAcknowledgement(notice, actionKey, asked);
  if (verdict !== "acknowledge") return { verdict, notice };
  const acknowledged = { ...notice, acknowledged: { by: asked.by, why: asked.why, at } };
  keep(state, acknowledged, asked.actionKey);
  const older = [...state.notices.values()]
    .map((each) => each.notice)
    .filter((each) => each.acknowledged !== null && isAbout(each, notice))
    .sort((a, b) => Number(b.acknowledged?.at) - Number(a.acknowledged?.at));
  for (const { noticeId } of older.slice(MOST_ACKNOWLEDGED)) state.notices.delete(noticeId);
  return { verdict, notice: acknowledged };
}

export function forget(state: DatabaseState, olderThan: Date, most: number): number {
  const old = [...state.notices.values()]
    .map(({ notice }) => notice)
    .filter(({ acknowledged, overAt }) => {
      const ended = Math.max(acknowledged?.at.getTime() ?? 0, overAt?.getTime() ?? 0);
      return ended > 0 && ended < olderThan.getTime();
    });
  for (const { noticeId } of old.slice(0, most)) state.notices.delete(noticeId);
  return Math.min(old.length, most);
}

export function openNotices(state: DatabaseState): readonly Notice[] {
  const all = [...state.notices.values()].map(({ notice }) => notice).filter(isOpen);
  return all.sort((a, b) => a.firstSeenAt.getTime() - b.firstSeenAt.getTime());
}

function isOpen({ acknowledged, overAt }: Notice): boolean {
  return acknowledged === null && overAt === null;
}
