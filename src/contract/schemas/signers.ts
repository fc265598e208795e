import { type Static, Type } from "typebox";
import { HOLE_CAUSES } from "../../domain/nonces/holes.ts";
import { WINDOW_LIMITS } from "../../domain/pace/lane-pace.ts";
import { STATES } from "../../domain/transaction/transitions.ts";
import { Address, After, ChainId, Decimal, InstanceId, NodeId, Nonce, Timestamp, TxId } from "./scalars.ts";
import {
  amount,
  count,
  described,
  flag,
  limit,
  list,
  MOSTLY_NULL,
  named,
  nullable,
  object,
  oneOf,
  ordinal,
  query,
  text,
  truth,
} from "./shapes.ts";

const SignerName = text("Name of the signer in the configuration.", "payouts-2");

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
  name: nullable(SignerName, MOSTLY_NULL),
  cursor: nullable(count("The next nonce; null while the lane is unused.", 8)),
  chainCounts: nullable(
    object(
      {
        latest: count("", 8),
        pending: nullable(count("", 8)),
        asOf: described(Timestamp, "When the older of the two was read."),
      },
      "As the node that answers last read them from the chain; null if it has read none.",
    ),
  ),
  pending: count(),
  confirmed: count("", 8),
  failed: count(),
  stuck: count(),
  reserved: count(),
  holes: list(
    object({ nonce: Nonce, why: oneOf(HOLE_CAUSES), detail: text(), since: Timestamp }),
    "Nonces below the cursor that nothing holds: everything above the lowest waits.",
    [],
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
    MOSTLY_NULL,
  ),
  balance: nullable(described(Decimal, "As the node that answers last read it from the chain.")),
  balanceAsOf: nullable(described(Timestamp, "When the balance was read.")),
  signerAway: nullable(
    object(
      {
        since: Timestamp,
        reason: text(),
        lies: truth("The signer answers with something else than it was asked to sign (SIGNER_LIES)."),
      },
      "Nothing is signed for the lane now, as the node that answers knows it; null: it signs, or another node acts.",
    ),
    MOSTLY_NULL,
  ),
  unowned: nullable(
    object(
      { since: Timestamp, reason: text("", "no live node holds its key") },
      "Transactions wait here and no node acts for the lane (LANE_UNOWNED); null: one does, nothing waits, or a node may still take it over.",
    ),
    MOSTLY_NULL,
  ),
  window: nullable(
    object(
      {
        configured: ordinal("FENCEPOST_IN_FLIGHT_WINDOW.", 64),
        open: ordinal(
          "How many may be on their way now: fewer where the chain's node takes no nonce ahead of the next one.",
          64,
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
  owner: nullable(object({ nodeId: NodeId, instanceId: InstanceId, url: text("", "http://10.0.0.7:3000") })),
  lease: nullable(
    object({ fencingToken: Type.Integer({ examples: [3] }), acquiredAt: nullable(Timestamp), expiresAt: Timestamp }),
  ),
  decisions: Type.Optional(list(LaneDecision, "What people decided about the lane, newest first; of one signer only.")),
});
export type SignerLane = Static<typeof SignerLane>;

export const SignerLanes = named("SignerLanes", { items: list(SignerLane) });
export type SignerLanes = Static<typeof SignerLanes>;

export const SignersQuery = query({
  after: After,
  limit: limit(500),
  chainId: ChainId,
  owner: Type.String({ minLength: 1, maxLength: 255, description: "The node that acts for them, by its name." }),
  needs: oneOf(
    ["attention"],
    "Only lanes that are suspended or stuck, have transactions and no owner, have a nonce that nothing holds, or something that is held back.",
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

export const SignerNames = named("SignerNames", { items: list(object({ signer: Address, name: SignerName })) });
export type SignerNames = Static<typeof SignerNames>;
