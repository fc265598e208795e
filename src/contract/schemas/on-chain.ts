import { Type } from "typebox";
import { Address, AnsweredHash, Hash, Hex, Timestamp } from "./scalars.ts";
import { named, nullable, oneOf } from "./shapes.ts";

const count = Type.Integer({ minimum: 0 });

/** What became of the question. */
export const LOOK_KINDS = ["shown", "unmined", "unknown", "differs", "silent"] as const;

const KnownEvent = Type.Object(
  { name: Type.String(), args: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })) },
  { description: "Where the log is one of an event that everybody knows, as of token standards." },
);

const OnChainLog = named("OnChainLog", {
  address: Address,
  topics: Type.Array(Hash, { maxItems: 4 }),
  data: Type.Unsafe<string>({ ...Hex, description: "Its first 1,024 bytes." }),
  dataLength: count,
  event: nullable(KnownEvent),
});

const OnChainRevert = Type.Object(
  {
    name: nullable(Type.String({ description: "Error or Panic; null for an error of the contract's own." })),
    message: nullable(Type.String()),
    data: Type.Unsafe<string>({ ...Hex, description: "Its first 1,024 bytes; `0x` where none were told." }),
  },
  {
    description:
      "By calling it again on the state before its block. What stood before it in the block may have been why it reverted: then this says something else, or nothing.",
  },
);

export const OnChain = named(
  "OnChain",
  {
    kind: oneOf(LOOK_KINDS, {
      description:
        "shown: as an endpoint says. unmined: there is no receipt to ask about. unknown: the endpoint has none. differs: it shows the transaction in another block than the one that is known. silent: no endpoint answered in time, or with something of use.",
    }),
    askedAt: Timestamp,
    blockHash: nullable(AnsweredHash),
    logs: Type.Array(OnChainLog, { description: "At most 100." }),
    more: Type.Integer({ minimum: 0, description: "Logs that were left out." }),
    revert: nullable(OnChainRevert),
  },
  {
    description:
      "With `include=logs` alone: what one endpoint shows of a mined transaction now. Contracts wrote it; nothing is decided by it, and nothing of it is kept.",
  },
);
