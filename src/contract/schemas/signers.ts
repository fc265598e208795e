import { type Static, Type } from "typebox";
import { HOLE_CAUSES } from "../../domain/nonces/holes.ts";
import { WINDOW_LIMITS } from "../../domain/pace/window-limits.ts";
import { STATES } from "../../domain/transaction/transitions.ts";
import { Address, ChainId, Decimal, Nonce, Timestamp, TxId } from "./scalars.ts";
import {
  amount,
  count,
  flag,
  limit,
  list,
  named,
  nullable,
  object,
  oneOf,
  ordinal,
  query,
  text,
  truth,
} from "./shapes.ts";

const LaneDecision = named("LaneDecision", {
  action: text("", "suspend"),
  actor: text("", "operator:on-call"),
  reason: text(),
  nodeId: nullable(text()),
  fencingToken: Type.Integer(),
  at: Timestamp,
});

export const SignerLane = named("SignerLane", {
  chainId: ChainId,
  signer: Address,
  cursor: nullable(count("The next nonce; null while the lane is unused.")),
  chainCounts: nullable(
    object(
      { latest: count(), pending: nullable(count()) },
      "As the chain last told the node that answers; null where it has not asked.",
    ),
  ),
  pending: count(),
  confirmed: count(),
  failed: count(),
  stuck: count(),
  reserved: count(),
  holes: list(
    object({ nonce: Nonce, why: oneOf(HOLE_CAUSES), detail: text(), since: Timestamp }),
    "Nonces below the cursor that nothing holds: everything above the lowest waits.",
  ),
  oldestPendingAgeSeconds: nullable(amount()),
  headOfLine: nullable(
    object(
      {
        txId: TxId,
        nonce: Nonce,
        state: oneOf(STATES),
        createdAt: Timestamp,
        held: truth("An operator holds it back."),
      },
      "What everything behind it waits for.",
    ),
  ),
  balance: nullable(Decimal),
  signerAway: nullable(
    object(
      { since: Timestamp, reason: text() },
      "Nothing is signed for the lane now, as the node that answers knows it; null: it signs, or another node acts.",
    ),
  ),
  window: nullable(
    object(
      {
        configured: ordinal("FENCEPOST_IN_FLIGHT_WINDOW."),
        open: ordinal(
          "How many may be on their way now: fewer where the chain's node takes no nonce ahead of the next one.",
        ),
        inFlight: count("Signed, and not mined."),
        limitedBy: nullable(
          oneOf(WINDOW_LIMITS, "What keeps the next one from being signed; null: nothing does, or nothing waits."),
        ),
      },
      "As the node that answers knows it; null: another node acts for the lane, or none.",
    ),
  ),
  suspended: truth(),
  suspendedBy: nullable(
    oneOf(
      ["OPERATOR", "HISTORY"],
      "HISTORY: the database may lack commits. No nonce is given either, until an operator resumes.",
    ),
  ),
  owner: nullable(object({ nodeId: text(), instanceId: text(), url: text() })),
  lease: nullable(object({ fencingToken: Type.Integer(), acquiredAt: nullable(Timestamp), expiresAt: Timestamp })),
  decisions: Type.Optional(list(LaneDecision, "What people decided about the lane, newest first; of one signer only.")),
});
export type SignerLane = Static<typeof SignerLane>;

export const SignerLanes = named("SignerLanes", { items: list(SignerLane) });
export type SignerLanes = Static<typeof SignerLanes>;

const SIGNERS_LIMIT = 500;

export const SignersQuery = query({
  after: Type.String({ minLength: 1, maxLength: 512, description: "`next` of the page before." }),
  limit: limit(SIGNERS_LIMIT),
  chainId: ChainId,
  owner: Type.String({ minLength: 1, maxLength: 255, description: "The node that acts for them, by its name." }),
  needs: oneOf(
    ["attention"],
    "Only lanes that are suspended or stuck, have a nonce that nothing holds, or something that is held back.",
  ),
});
export type SignersQuery = Static<typeof SignersQuery>;

export const SignersPage = named("SignersPage", {
  items: list(SignerLane),
  next: nullable(text("The value for the next `after`.")),
});
export type SignersPage = Static<typeof SignersPage>;

export const SignerQuery = query({
  fresh: flag(["true", "false"], { default: "false", description: "Ask the chain for its counts and the balance." }),
});
