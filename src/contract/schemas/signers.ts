import { type Static, Type } from "typebox";
import { HOLE_CAUSES } from "../../domain/nonces/holes.ts";
import { WINDOW_LIMITS } from "../../domain/pace/lane-pace.ts";
import { STATES } from "../../domain/transaction/transitions.ts";
import { Address, ChainId, Decimal, Nonce, Timestamp, TxId } from "./scalars.ts";
import { flag, named, nullable, oneOf, query } from "./shapes.ts";

const count = Type.Integer({ minimum: 0 });

const LaneDecision = named("LaneDecision", {
  action: Type.String({ examples: ["suspend"] }),
  actor: Type.String({ examples: ["operator:on-call"] }),
  reason: Type.String(),
  nodeId: nullable(Type.String()),
  fencingToken: Type.Integer(),
  at: Timestamp,
});

export const SignerLane = named("SignerLane", {
  chainId: ChainId,
  signer: Address,
  cursor: nullable(Type.Integer({ minimum: 0, description: "The next nonce; null while the lane is unused." })),
  chainCounts: nullable(
    Type.Object(
      { latest: count, pending: nullable(count) },
      { description: "As the chain last told the node that answers; null where it has not asked." },
    ),
  ),
  pending: count,
  confirmed: count,
  failed: count,
  stuck: count,
  reserved: count,
  holes: Type.Array(Type.Object({ nonce: Nonce, why: oneOf(HOLE_CAUSES), detail: Type.String(), since: Timestamp }), {
    description: "Nonces below the cursor that nothing holds: everything above the lowest waits.",
  }),
  oldestPendingAgeSeconds: nullable(Type.Number({ minimum: 0 })),
  headOfLine: nullable(
    Type.Object(
      {
        txId: TxId,
        nonce: Nonce,
        state: oneOf(STATES),
        createdAt: Timestamp,
        held: Type.Boolean({ description: "An operator holds it back." }),
      },
      { description: "What everything behind it waits for." },
    ),
  ),
  balance: nullable(Decimal),
  signerAway: nullable(
    Type.Object(
      { since: Timestamp, reason: Type.String() },
      {
        description:
          "Nothing is signed for the lane now, as the node that answers knows it; null: it signs, or another node acts.",
      },
    ),
  ),
  window: nullable(
    Type.Object(
      {
        configured: Type.Integer({ minimum: 1, description: "FENCEPOST_IN_FLIGHT_WINDOW." }),
        open: Type.Integer({
          minimum: 1,
          description:
            "How many may be on their way now: fewer where the chain's node takes no nonce ahead of the next one.",
        }),
        inFlight: Type.Integer({ minimum: 0, description: "Signed, and not mined." }),
        limitedBy: nullable(
          oneOf(WINDOW_LIMITS, {
            description: "What keeps the next one from being signed; null: nothing does, or nothing waits.",
          }),
        ),
      },
      { description: "As the node that answers knows it; null: another node acts for the lane, or none." },
    ),
  ),
  suspended: Type.Boolean(),
  suspendedBy: nullable(
    oneOf(["OPERATOR", "HISTORY"], {
      description: "HISTORY: the database may lack commits. No nonce is given either, until an operator resumes.",
    }),
  ),
  owner: nullable(Type.Object({ nodeId: Type.String(), instanceId: Type.String(), url: Type.String() })),
  lease: nullable(Type.Object({ fencingToken: Type.Integer(), acquiredAt: nullable(Timestamp), expiresAt: Timestamp })),
  decisions: Type.Optional(
    Type.Array(LaneDecision, { description: "What people decided about the lane, newest first; of one signer only." }),
  ),
});
export type SignerLane = Static<typeof SignerLane>;

export const SignerLanes = named("SignerLanes", { items: Type.Array(SignerLane) });
export type SignerLanes = Static<typeof SignerLanes>;

const SIGNERS_LIMIT = 500;

export const SignersQuery = query({
  after: Type.String({ minLength: 1, maxLength: 512, description: "`next` of the page before." }),
  limit: Type.Integer({ minimum: 1, maximum: SIGNERS_LIMIT, default: 100 }),
  chainId: ChainId,
  owner: Type.String({ minLength: 1, maxLength: 255, description: "The node that acts for them, by its name." }),
  needs: oneOf(["attention"], {
    description:
      "Only lanes that are suspended or stuck, have a nonce that nothing holds, or something that is held back.",
  }),
});
export type SignersQuery = Static<typeof SignersQuery>;

export const SignersPage = named("SignersPage", {
  items: Type.Array(SignerLane),
  next: nullable(Type.String({ description: "The value for the next `after`." })),
});
export type SignersPage = Static<typeof SignersPage>;

export const SignerQuery = query({
  fresh: flag(["true", "false"], { default: "false", description: "Ask the chain for its counts and the balance." }),
});
