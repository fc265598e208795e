import type { Acknowledgement, AcknowledgeVerdict, Notice } from "../domain/cluster/notices.ts";
import type { Address } from "../domain/lane.ts";

export interface NoticeFilter {
  readonly signer?: Address;
  readonly chainId?: number;
  /** True: only notices that are neither acknowledged nor over. */
  readonly open?: boolean;
  readonly limit: number;
}

/** Result of acknowledging a notice, with the notice as it is afterwards. */
export interface Acknowledged {
  readonly verdict: AcknowledgeVerdict;
  readonly notice: Notice;
}

/**
 * Notices: single events that a person has to review (domain/notices.ts). If another program used a key, the commit
 * that found this writes the notice. `declareDead` writes one for a vanished node, and `registerInstance` one for its
 * return. This port reads and acknowledges notices.
 */
export interface NoticeStore {
  /** Notices, newest first. */
  notices(filter: NoticeFilter): Promise<readonly Notice[]>;
  notice(noticeId: string): Promise<Notice | null>;
  /**
   * Marks a notice as acknowledged; null if there is no such notice. Any node may write it, because no lane data
   * changes.
   */
  markAcknowledged(asked: Acknowledgement): Promise<Acknowledged | null>;
  /** Deletes notices that were acknowledged, or whose event was over, longer than `ageMs` ago; returns their number. */
  forgetNotices(ageMs: number, most: number): Promise<number>;
}
