/**
 * Notices: single events that a person must investigate, open until they are acknowledged or the vanished node is back.
 * Another program's use of a key may mean that the key was stolen; a node that vanished may have left its keys behind.
 * The event is over at once, but the danger is not. Pure functions.
 */
import type { Hash, Hex, Lane } from "../lane.ts";

export const NOTICE_KINDS = ["EXTERNAL_KEY_USE", "NODE_VANISHED"] as const;
export type NoticeKind = (typeof NOTICE_KINDS)[number];

/** Nonces of a lane that transactions from another program used. */
export interface ForeignUse {
  readonly nonce: number;
  /** Highest nonce used, if the chain's count passed several nonces at once. */
  readonly through: number;
  /** Hash of the other program's transaction; null if only the chain's count shows it and no endpoint returned it. */
  readonly txHash: Hash | null;
  /** Our transaction at this nonce, in whose place the other one was mined; null if none of ours had the nonce. */
  readonly txId: string | null;
}

/** One event of a notice: another program used a key, or a node vanished. */
export interface NoticeEvidence extends Partial<ForeignUse> {
  readonly at: Date;
  readonly instanceId?: string;
  /** Evidence that the node's process ended. */
  readonly why?: string;
  /** Number of lanes that the node held when it ended. */
  readonly lanes?: number;
}

export interface Notice {
  readonly noticeId: string;
  readonly kind: NoticeKind;
  /** The lane, for EXTERNAL_KEY_USE; else null. */
  readonly lane: Lane | null;
  /** The node's id, for NODE_VANISHED; else null. */
  readonly nodeId: string | null;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
  /**
   * Number of events of the notice. Repeats of the event are counted here until the notice is acknowledged or the
   * vanished node is back; later ones begin a new notice.
   */
  readonly times: number;
  /** The last events of the notice, newest first. */
  readonly evidence: readonly NoticeEvidence[];
  /** For NODE_VANISHED: the time at which the node came back; null if it has not. Null for other notices. */
  readonly overAt: Date | null;
  readonly acknowledged: { readonly by: string; readonly at: Date; readonly why: string } | null;
}

export const MOST_EVIDENCE = 20;
/** Number of acknowledged notices that are stored per lane or node. */
export const MOST_ACKNOWLEDGED = 100;

export function timesOf({ nonce, through }: Pick<ForeignUse, "nonce" | "through">): number {
  return through - nonce + 1;
}

/** True if a node that ended counts as vanished. False if it was shutting down and had no lanes left. */
export function isVanished({ draining, lanes }: { draining: boolean; lanes: number }): boolean {
  return !draining || lanes > 0;
}

/** An operator's acknowledgement of a notice. */
export interface Acknowledgement {
  readonly noticeId: string;
  readonly by: string;
  readonly why: string;
  /** Number of events that the operator has seen; null if not given. */
  readonly times: number | null;
  /** Idempotency key of the caller, with the fingerprint of the request; null if the caller gave no key. */
  readonly actionKey: { readonly key: string; readonly fingerprint: Hex } | null;
}

export type KeptActionKey = NonNullable<Acknowledgement["actionKey"]>;

/**
 * `acknowledge`: write the acknowledgement. `stands`: this same action was already carried out. `reused`: another
 * action has this idempotency key. `taken`: another action acknowledged the notice. `grown`: the event happened again
 * since the operator read the notice.
 */
export type AcknowledgeVerdict = "acknowledge" | "stands" | "reused" | "taken" | "grown";

export function judgeAcknowledgement(
  { acknowledged, times }: Pick<Notice, "acknowledged" | "times">,
  kept: KeptActionKey | null,
  asked: Acknowledgement,
): AcknowledgeVerdict {
  if (acknowledged === null) return asked.times === null || asked.times === times ? "acknowledge" : "grown";
  const isSameKey = asked.actionKey !== null && kept?.key === asked.actionKey.key;
  if (isSameKey) return kept?.fingerprint === asked.actionKey?.fingerprint ? "stands" : "reused";
  const isSame = asked.actionKey === null && acknowledged.by === asked.by && acknowledged.why === asked.why;
  return isSame ? "stands" : "taken";
}
