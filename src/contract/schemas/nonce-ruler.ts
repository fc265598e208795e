import { type Static, Type } from "typebox";
import { SPAN_KINDS } from "../../domain/nonces/nonce-spans.ts";
import { Address, ChainId, Nonce, Timestamp, TxId } from "./scalars.ts";
import { count, described, list, named, nullable, oneOf, optional, query, text } from "./shapes.ts";

const Span = named(
  "NonceSpan",
  "Neighbours of one kind are one span, both ends included; those that somebody may have to look at stand alone, with their id.",
  {
    from: Nonce,
    to: Nonce,
    kind: oneOf(SPAN_KINDS),
    ...optional({ txId: TxId, reservationId: Type.String({ format: "uuid" }), detail: text() }),
  },
);

export const NonceRuler = named("NonceRuler", {
  chainId: ChainId,
  signer: Address,
  from: Nonce,
  to: count("The last nonce that is shown.", 9),
  cursor: nullable(count("The next nonce to be given; null while the lane is unused.", 10)),
  mined: nullable(count("How many the chain counts as mined, as this node last read it; null: it has read none.", 7)),
  minedAsOf: nullable(described(Timestamp, "When that was read.")),
  final: count("Every nonce below this one is over, or was not ours.", 6),
  spans: list(Span, "Ascending; nonces from the cursor on are in none."),
});
export type NonceRuler = Static<typeof NonceRuler>;

export const NonceRulerQuery = query({
  chainId: ChainId,
  from: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: "Without it, a little below what is not final.",
  }),
  to: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: "At most 2,000 nonces at once. Without it, up to the cursor.",
  }),
});
export type NonceRulerQuery = Static<typeof NonceRulerQuery>;
