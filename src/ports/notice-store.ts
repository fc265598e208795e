import type { AcknowledgeOrder, AcknowledgeVerdict, Notice } from "../domain/cluster/notices.ts";
import type { Address } from "../domain/lane.ts";

export interface NoticeFilter {
  readonly signer?: Address;
  readonly chainId?: number;
  /** Only notices that are neither acknowledged nor over. */
  readonly open?: boolean;
  readonly limit: number;
}

/** Result of an acknowledgement, with the notice after it. */
export interface Acknowledged {
  readonly verdict: AcknowledgeVerdict;
  readonly notice: Notice;
}

/**
 * Events that happened once and wait for a person (domain/notices.ts). Foreign uses of a key are written by the commit
 * that found them, a vanished node by `declareDead`, its return by `registerInstance`. This port reads and acknowledges
 * them.
 */
export interface NoticeStore {
  /** Newest first. */
  notices(filter: NoticeFilter): Promise<readonly Notice[]>;
  notice(noticeId: string): Promise<Notice | null>;
  /** Null if there is no such notice. Any node may write it: no lane data changes. */
  markAcknowledged(order: AcknowledgeOrder): Promise<Acknowledged | null>;
  /** Deletes notices that were acknowledged or over for longer than this; returns how many. */
  forgetNotices(ageMs: number, most: number): Promise<number>;
}
