import type { ArrivingPage, MoveStep, OpenWork, Standing } from "../domain/cluster/lane-move.ts";
import type { Address, Lane } from "../domain/lane.ts";
import type { MessageUse } from "../domain/policy/message-rules.ts";
import type { Use } from "../domain/policy/use.ts";

/** What a lane takes along to another cell, beside its request ids. */
export interface Baggage {
  readonly chainId: number;
  readonly signer: Address;
  /** Null: the signer was never used. */
  readonly nextNonce: number | null;
  /** What the signer has used of its limits in the hour and day of its last charge. */
  readonly use: Use;
  /** What the signer's rules about messages have counted, by the rule's name. */
  readonly messageUse: readonly (MessageUse & { readonly rule: string })[];
}

/** A page of what a lane takes along. Pages are taken over in order, each from the `next` of the page before. */
export interface DeparturePage extends Baggage, ArrivingPage {
  /** Digests of request ids that the lane has used, as hex without 0x. */
  readonly requests: readonly string[];
}

/** Why and by whom a step was made, for the audit. */
export interface MoveDecision {
  readonly actor: string;
  readonly reason: string;
}

export interface Moved {
  readonly standing: Standing;
  /** What keeps a lane that is leaving from having left. */
  readonly open: OpenWork;
}

/** A step of a move; `arrive` brings the page that it takes over. */
export type MoveWish =
  | Exclude<MoveStep, { readonly step: "arrive" }>
  | { readonly step: "arrive"; readonly moveId: string; readonly page: DeparturePage };

/** Moves of lanes between cells (domain/cluster/lane-move.ts). */
export interface LaneMoveStore {
  /**
   * Makes a step under the lane's lock. A step that changes the lane's place ends its term, so that no owner acts on
   * what it remembers of the place. Throws a FencepostError (CONFLICT) if the step is not possible.
   */
  moveLane(lane: Lane, wish: MoveWish, decision: MoveDecision): Promise<Moved>;
  /**
   * Reads a page of what a lane that has left takes along; null unless it has left by this move. `after`: `next` of the
   * page before; null: the first page.
   */
  departurePage(lane: Lane, moveId: string, after: string | null): Promise<DeparturePage | null>;
}
