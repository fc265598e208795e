import type { Acknowledgement, AcknowledgeVerdict, Notice } from "../domain/cluster/notices.ts";
import type { Address } from "../domain/lane.ts";

export interface NoticeFilter {
  readonly signer?: Address;
  readonly chainId?: number;
  /** True: return only notices that are not acknowledged and whose event is not over. */
  readonly open?: boolean;
  readonly limit: number;
}

/** Result of acknowledging a notice, with the notice after the change. */
export interface Acknowledged {
  readonly verdict: AcknowledgeVerdict;
  readonly notice: Notice;
}

/**
 * Notices: single events that a person has to review (domain/cluster/notices.ts). They are written elsewhere: use of a
 * key by another program by the commit that found it, a vanished node by `declareDead`, its return by
 * `registerInstance`. This port reads and acknowledges notices.
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
  /**
   * Deletes notices that were acknowledged or whose event ended; if both, the later time counts. It must be more than
   * `ageMs` ago. Returns the number deleted.
   */
  forgetNotices(ageMs: number, most: number): Promise<number>;
}
