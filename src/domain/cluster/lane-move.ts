/**
 * Moves of a lane between cells: independent deployments, each with its own database. At most one cell gives a lane's
 * nonces, although no transaction spans two databases. The order of durable steps makes it so:
 *
 * 1. `expect`, at the destination: a lane that never gave a nonce there, or has left, is EXPECTED under a new move id.
 * 2. `leave`, at the source, under that id: LEAVING gives no nonces to new requests; what it has runs on to its outcome.
 *    Once nothing is open the lane has LEFT, for good: its next nonce never changes again.
 * 3. `arrive`, at the destination: takes over the request ids of the lane, page by page, and with the last page its next
 *    nonce and the use of its limits. Only the destination of the move id is EXPECTED under it, and only once.
 *
 * Each step may be repeated, after any crash, by anybody.
 */
import { FencepostError } from "../errors.ts";
import type { Hash } from "../lane.ts";

/**
 * HERE: this cell gives the lane's nonces. LEAVING: it gives none to new requests. LEFT: another cell gives them.
 * EXPECTED: the lane is on its way to this cell. An EXPECTED or LEFT lane gives no nonce, and its next nonce is frozen.
 */
export const PLACES = ["HERE", "EXPECTED", "LEAVING", "LEFT"] as const;
export type Place = (typeof PLACES)[number];

export interface Standing {
  readonly place: Place;
  /** Move under which the lane is leaving or last left; null: it is HERE, or never was. */
  readonly leftBy: string | null;
  /** Move under which the lane is expected, or arrived; null: it has always been here. */
  readonly arrivesBy: string | null;
  /** `next` of the last page of request ids that was taken over; null: none. */
  readonly carried: string | null;
}

export const AT_HOME: Standing = { place: "HERE", leftBy: null, arrivesBy: null, carried: null };

/** Facts of a lane that decide about its move, read under the lane's lock. */
export interface MoveFacts {
  /** True if this cell ever gave a nonce of the lane, or has accepted an intent for it. */
  readonly used: boolean;
  /** True if the lane must be compared with the chain, or checked by an operator, before it gives a nonce. */
  readonly held: boolean;
  /** Number of things that would need a nonce, or have one that is not decided, by kind. */
  readonly open: OpenWork;
  /** Genesis hash of the chain as this cell knows it; null: it knows none yet. */
  readonly genesisHash: Hash | null;
}

export interface OpenWork {
  readonly transactions: number;
  readonly intents: number;
  readonly reservations: number;
  readonly holes: number;
}

export type MoveStep =
  /** `moveId`: the id of the move, if this step begins one. */
  | { readonly step: "expect"; readonly moveId: string }
  | { readonly step: "leave"; readonly moveId: string }
  | { readonly step: "stay"; readonly moveId: string }
  | ({ readonly step: "arrive" } & ArrivingPage);

/** Place of a page among the pages that the lane takes along, and the chain that it comes from. */
export interface ArrivingPage {
  readonly moveId: string;
  /** `next` of the page before; null: this is the first page. */
  readonly after: string | null;
  /** Null: this is the last page. */
  readonly next: string | null;
  readonly genesisHash: Hash | null;
}

const HELD =
  "the database may lack commits: the signer waits until it was compared with the chain, or an operator resumes it";

/** Returns the lane's standing after the step. Throws CONFLICT if the step is not possible. */
export function judgeMove(standing: Standing, step: MoveStep, facts: MoveFacts): Standing {
  switch (step.step) {
    case "expect":
      return expect(standing, step.moveId, facts);
    case "leave":
      return leave(standing, step.moveId, facts);
    case "stay":
      return stay(standing, step.moveId);
    case "arrive":
      return arrive(standing, step, facts);
  }
}

function expect(standing: Standing, moveId: string, { used }: MoveFacts): Standing {
  if (standing.place === "EXPECTED") return standing;
  if (standing.place === "HERE" && hasServed(standing, used))
    throw refused("this cell gives the signer's nonces: nothing can arrive here");
  if (standing.place === "LEAVING") throw refused(`the signer is leaving this cell by move ${standing.leftBy}`);
  return { ...standing, place: "EXPECTED", arrivesBy: moveId, carried: null };
}

function leave(standing: Standing, moveId: string, { used, held, open }: MoveFacts): Standing {
  if (standing.leftBy === moveId && hasLeft(standing)) return standing;
  if (isElsewhere(standing)) throw refused("another cell gives the signer's nonces: nothing can leave here");
  if (standing.arrivesBy === moveId) throw refused("the signer arrived here by this move: expect it elsewhere first");
  if (standing.leftBy !== null && standing.leftBy !== moveId)
    throw refused(`the signer is leaving by move ${standing.leftBy}`);
  // By mistake, a cell that never had the signer would let the destination open it beside the cell that has it.
  if (!hasServed(standing, used)) throw refused("this cell never served the signer: it is not the one to leave");
  if (held) throw refused(HELD);
  return { ...standing, place: isNothing(open) ? "LEFT" : "LEAVING", leftBy: moveId };
}

function stay(standing: Standing, moveId: string): Standing {
  if (standing.place === "HERE") return standing;
  if (standing.place === "LEAVING" && standing.leftBy === moveId) return { ...standing, place: "HERE", leftBy: null };
  throw refused("the signer has left, or is leaving by another move: this one cannot be called off here");
}

function arrive(standing: Standing, step: ArrivingPage, { genesisHash, held }: MoveFacts): Standing {
  const { place, arrivesBy, carried } = standing;
  if (arrivesBy !== step.moveId || (place !== "EXPECTED" && place !== "HERE"))
    throw refused("the signer is not expected here by this move");
  if (step.genesisHash !== null && genesisHash !== null && step.genesisHash !== genesisHash)
    throw refused("the signer comes from another chain with the same id: its genesis block differs");
  // Pages are taken over in order, each once: a page that was skipped would leave request ids unknown here.
  if (place === "HERE" || step.after !== carried) return standing;
  if (held) throw refused(HELD);
  if (step.next !== null) return { ...standing, carried: step.next };
  return { ...standing, place: "HERE", leftBy: null, carried: null };
}

function hasServed({ arrivesBy }: Standing, used: boolean) {
  return used || arrivesBy !== null;
}

/** True if another cell gives the lane's nonces, or none does yet. */
export function isElsewhere({ place }: Pick<Standing, "place">): boolean {
  return place === "EXPECTED" || place === "LEFT";
}

/** True if the lane's request ids may be handed over: it gives no nonces here, and nothing has arrived since it left. */
export function hasLeft({ place, leftBy, carried }: Standing): boolean {
  return leftBy !== null && isElsewhere({ place }) && carried === null;
}

export function isNothing({ transactions, intents, reservations, holes }: OpenWork): boolean {
  return transactions + intents + reservations + holes === 0;
}

function refused(detail: string) {
  return new FencepostError("CONFLICT", `${detail}; nothing was changed`);
}

const MOVED: Readonly<Record<Place, string>> = {
  HERE: "the signer was moving",
  EXPECTED: "the signer is expected in this cell, and has not arrived",
  LEAVING: "the signer is leaving this cell",
  LEFT: "the signer has left this cell",
};

/** Error for a request that needs a nonce of a lane that another cell serves, or will. Nothing was accepted. */
export function signerMoved(place: Place): FencepostError {
  return new FencepostError("SIGNER_MOVED", `${MOVED[place]}; nothing was accepted`);
}
