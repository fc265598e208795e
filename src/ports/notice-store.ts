import type { Address } from "../domain/lane.ts";
import type { AcknowledgeOrder, AcknowledgeVerdict, Notice } from "../domain/notices.ts";

export interface NoticeFilter {
  readonly signer?: Address;
  readonly chainId?: number;
  /** Only those that nobody acknowledged, and that are not over. */
  readonly open?: boolean;
  readonly limit: number;
}

/** What became of an acknowledgement, and the notice as it stands then. */
export interface Acknowledged {
  readonly verdict: AcknowledgeVerdict;
  readonly notice: Notice;
}

/**
 * What happened once and waits for a person (domain/notices.ts). Foreign uses of a key are written with the commit that found
 * them, a node that vanished by `declareDead`, and its return by `registerInstance`; here they are read and acknowledged.
 */
export interface NoticeStore {
  /** Newest first. */
  notices(filter: NoticeFilter): Promise<readonly Notice[]>;
  notice(noticeId: string): Promise<Notice | null>;
  /** Null: there is no such notice. Any node may write it: no lane's data changes. */
  markAcknowledged(order: AcknowledgeOrder): Promise<Acknowledged | null>;
  /** Acknowledged ones, and those that are over, for longer than this; how many left. */
  forgetNotices(ageMs: number, most: number): Promise<number>;
}
