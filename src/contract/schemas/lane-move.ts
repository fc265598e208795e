import { type Static, Type } from "typebox";
import { PLACES } from "../../domain/cluster/lane-move.ts";
import { Address, ChainId, Decimal, Hash, STORY } from "./scalars.ts";
import { closed, count, described, list, named, nullable, object, oneOf, optional, text } from "./shapes.ts";

/** Schemas of moves of a signer between cells: independent deployments, each with its own database. */

export const SignerPlace = oneOf(
  PLACES,
  "HERE: this cell gives its nonces. LEAVING: it gives none to new requests. LEFT: another cell does. EXPECTED: it is on its way here.",
  "HERE",
);

const MOVE_ID = "019a4b7e-9c00-7000-8000-0000000000c1";
const MoveId = Type.String({
  format: "uuid",
  description: "Id of the move, given by the cell that expects the signer.",
  examples: [MOVE_ID],
});
const PageMark = Type.String({ minLength: 1, maxLength: 100, description: "`next` of the page before." });
const Used = object({ value: Decimal, cost: Decimal });
const Counted = object({ amount: Decimal, signatures: count() });
const HourMs = count("Start of the hour, in ms since 1970; 0: nothing was counted.");
const reason = Type.String({
  minLength: 1,
  maxLength: 1_000,
  description: "Why; kept in the history.",
  examples: ["new cell"],
});

export const MovePage = closed("MovePage", "What a signer takes along from the cell that it left, a page of it.", {
  moveId: MoveId,
  chainId: ChainId,
  signer: Address,
  genesisHash: nullable(described(Hash, "Of the chain, as the cell that it left knows it.")),
  nextNonce: nullable(count("The first nonce that the other cell gives; null: it was never used.", 8)),
  use: object({ hourMs: HourMs, hour: Used, day: Used }, "What counts towards limits of its policy."),
  messageUse: list(
    object({ rule: text(), hourMs: HourMs, hour: Counted, day: Counted }),
    "What its rules about messages have counted.",
  ),
  after: nullable(PageMark),
  next: nullable(described(PageMark, "Null: this is the last page.")),
  requests: list(
    Type.String({ pattern: "^[0-9a-f]{64}$" }),
    "Digests of request ids that it has used: they are refused at the other cell, too.",
    [],
  ),
});
export type MovePage = Static<typeof MovePage>;

/** The page of the examples: the only one of a signer that was used eight times. */
export const MOVE_PAGE: MovePage = {
  ...{ moveId: MOVE_ID, chainId: 31337, signer: STORY.signer as `0x${string}`, genesisHash: null, nextNonce: 8 },
  use: { hourMs: 0, hour: { value: "0", cost: "0" }, day: { value: "0", cost: "0" } },
  ...{ messageUse: [], after: null, next: null, requests: [] },
};

export const MoveSigner = closed(
  "MoveSigner",
  { examples: [{ step: "leave", moveId: MOVE_ID, reason: "new cell" }] },
  {
    step: oneOf(["expect", "leave", "arrive", "stay"]),
    reason,
    ...optional({
      chainId: ChainId,
      moveId: described(MoveId, "Of the move: with `leave` and `stay`."),
      after: described(PageMark, "With `leave`: `next` of the page before."),
      page: described(MovePage, "With `arrive`: a page as `leave` answered it."),
    }),
  },
);
export type MoveSigner = Static<typeof MoveSigner>;

export const LaneMove = named("LaneMove", {
  chainId: ChainId,
  signer: Address,
  place: SignerPlace,
  moveId: nullable(described(MoveId, "Of the move under way, or of the last one; null: there was none.")),
  after: nullable(described(PageMark, "`next` of the last page that arrived here; null: none did, or all.")),
  waitsFor: object(
    {
      transactions: count("Without an outcome."),
      intents: count("Accepted, without a nonce."),
      reservations: count("Open."),
      holes: count("Nonces that nothing holds."),
    },
    "What a signer that is leaving still has here.",
  ),
  page: Type.Optional(MovePage),
});
export type LaneMove = Static<typeof LaneMove>;
