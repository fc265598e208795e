import { type Static, Type } from "typebox";
import { MOST_EVIDENCE, NOTICE_KINDS } from "../../domain/cluster/notices.ts";
import { Address, ChainId, Hash, Nonce, Timestamp, TxId } from "./scalars.ts";
import {
  closed,
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
  optional,
  ordinal,
  query,
  text,
} from "./shapes.ts";

export const NoticeId = Type.String({ format: "uuid", examples: ["5c1f9a70-1e6f-4a58-9d43-0c2b7f2f6a11"] });

const Evidence = named(
  "NoticeEvidence",
  "One occurrence. EXTERNAL_KEY_USE: the nonce, or nonces, that a foreign transaction took, its hash where it was seen, and our transaction that lost the nonce. NODE_VANISHED: the instance that ended.",
  {
    at: Timestamp,
    ...optional({
      nonce: Nonce,
      through: Nonce,
      txHash: nullable(Hash),
      txId: nullable(TxId),
      instanceId: text(),
      why: text("How the end of the instance was noticed."),
      lanes: count("Lanes that the node held then."),
    }),
  },
);

const OWN_WALLET = "the finance team's own wallet, ticket 4711";

export const Notice = named("Notice", {
  noticeId: NoticeId,
  kind: oneOf(NOTICE_KINDS),
  chainId: nullable(ChainId),
  signer: nullable(Address),
  nodeId: nullable(text()),
  firstSeenAt: Timestamp,
  lastSeenAt: Timestamp,
  times: ordinal("How often it happened before it was acknowledged."),
  evidence: list(Evidence, `Newest first, the last ${MOST_EVIDENCE}.`),
  overAt: nullable(described(Timestamp, "Of a node that vanished: when it was back."), MOSTLY_NULL),
  acknowledged: nullable(object({ by: text("", "operator:ada"), at: Timestamp, why: text("", OWN_WALLET) })),
});
export type Notice = Static<typeof Notice>;

export const Notices = named("Notices", { items: list(Notice, "Newest first.") });
export type Notices = Static<typeof Notices>;

export const NoticesQuery = query({
  signer: Address,
  chainId: ChainId,
  open: flag(["true"], "Only those that nobody acknowledged, and that are not over."),
  limit: limit(500),
});
export type NoticesQuery = Static<typeof NoticesQuery>;

export const AcknowledgeOrder = closed("AcknowledgeOrder", {
  reason: Type.String({
    minLength: 1,
    maxLength: 1_000,
    description: "Why nobody has to look at it any more; kept.",
    examples: [OWN_WALLET],
  }),
  times: Type.Optional(
    ordinal("How often it had happened when you looked. Where it has happened again since, nothing is done (409)."),
  ),
});
export type AcknowledgeOrder = Static<typeof AcknowledgeOrder>;
