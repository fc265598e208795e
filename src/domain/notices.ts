/**
 * Notices: what happened once and a person has to look at, kept until somebody acknowledges it. A foreign use of a key may be a
 * stolen key; a node that vanished may have left its keys behind. The cause is over in a moment, and the danger is not. Pure.
 */
import type { Hash, Hex, Lane } from "./lane.ts";

export const NOTICE_KINDS = ["EXTERNAL_KEY_USE", "NODE_VANISHED"] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** Nonces of a lane that were used by a transaction that was not sent from here. */
export interface ForeignUse {
  readonly nonce: number;
  /** The last one, where the chain's count passed several at once. */
  readonly through: number;
  /** Null: the chain counts it, and nothing showed which transaction it was. */
  readonly txHash: Hash | null;
  /** Our transaction that lost the nonce; null: it was given to none. */
  readonly txId: string | null;
}

/** One occurrence, of either kind. */
export interface NoticeEvidence extends Partial<ForeignUse> {
  readonly at: Date;
  readonly instanceId?: string;
  /** How the end of the instance was noticed. */
  readonly why?: string;
  /** Lanes that it held then. */
  readonly lanes?: number;
}

export interface Acknowledgement {
  readonly by: string;
  readonly at: Date;
  readonly why: string;
}

export interface Notice {
  readonly noticeId: string;
  readonly kind: NoticeKind;
  /** Of EXTERNAL_KEY_USE. */
  readonly lane: Lane | null;
  /** Of NODE_VANISHED. */
  readonly nodeId: string | null;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
  /** How often: repeats before an acknowledgement are the same notice, and one after it is another. */
  readonly times: number;
  /** Newest first, the last ones. */
  readonly evidence: readonly NoticeEvidence[];
  /** When the node was back; null: it is not, or the notice is of another kind. */
  readonly overAt: Date | null;
  readonly acknowledged: Acknowledgement | null;
}

export const MOST_EVIDENCE = 20;
/** Acknowledged ones of one lane or node that are kept, the newest. */
export const MOST_ACKNOWLEDGED = 100;

export function isOpen({ acknowledged, overAt }: Pick<Notice, "acknowledged" | "overAt">): boolean {
  return acknowledged === null && overAt === null;
}

export function timesOf({ nonce, through }: Pick<ForeignUse, "nonce" | "through">): number {
  return through - nonce + 1;
}

/** A node that was leaving and had nothing left did not vanish. */
export function isVanished({ draining, lanes }: { readonly draining: boolean; readonly lanes: number }): boolean {
  return !draining || lanes > 0;
}

/** An operator's word that it was looked into. */
export interface AcknowledgeOrder {
  readonly noticeId: string;
  readonly by: string;
  readonly why: string;
  /** As often as the operator has seen it happen; null: not said. */
  readonly times: number | null;
  /** The key that the caller named it by, and the fingerprint of its words; null: it has none. */
  readonly order: { readonly key: string; readonly fingerprint: Hex } | null;
}

export type KeptOrder = NonNullable<AcknowledgeOrder["order"]>;

/**
 * `acknowledge`: to be written. `stands`: this very order was carried out. `reused`: another order was, under the same key.
 * `taken`: somebody else acknowledged it. `grown`: it happened again since the operator looked.
 */
export type AcknowledgeVerdict = "acknowledge" | "stands" | "reused" | "taken" | "grown";

export function judgeAcknowledgement(
  { acknowledged, times }: Pick<Notice, "acknowledged" | "times">,
  kept: KeptOrder | null,
  asked: AcknowledgeOrder,
): AcknowledgeVerdict {
  if (acknowledged === null) return asked.times === null || asked.times === times ? "acknowledge" : "grown";
  const isSameKey = asked.order !== null && kept?.key === asked.order.key;
  if (isSameKey) return kept?.fingerprint === asked.order?.fingerprint ? "stands" : "reused";
  const isSame = asked.order === null && acknowledged.by === asked.by && acknowledged.why === asked.why;
  return isSame ? "stands" : "taken";
}
