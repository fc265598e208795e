import { Address, Hash, Hex, Timestamp } from "./scalars.ts";
import { count, described, list, named, nullable, object, oneOf, text } from "./shapes.ts";

/** Outcomes of a look-up of a transaction's logs on the chain. */
export const LOOK_KINDS = ["shown", "unmined", "unknown", "differs", "silent"] as const;

const KnownEvent = object(
  { name: text(), args: list(object({ name: text(), value: text() })) },
  "Where the log is one of an event that everybody knows, as of token standards.",
);

const OnChainLog = named("OnChainLog", {
  address: Address,
  topics: list(Hash, { maxItems: 4 }),
  data: described(Hex, "Its first 1,024 bytes."),
  dataLength: count(),
  event: nullable(KnownEvent),
});

const OnChainRevert = object(
  {
    name: nullable(text("Error or Panic; null for an error of the contract's own.")),
    message: nullable(text()),
    data: described(Hex, "Its first 1,024 bytes; `0x` where none were told."),
  },
  "By calling it again on the state before its block. What stood before it in the block may have been why it reverted: then this says something else, or nothing.",
);

export const OnChain = named(
  "OnChain",
  "With `include=logs` alone: what one endpoint shows of a mined transaction now. Contracts wrote it; nothing is decided by it, and nothing of it is kept.",
  {
    kind: oneOf(
      LOOK_KINDS,
      "shown: as an endpoint says. unmined: there is no receipt to ask about. unknown: the endpoint has none. differs: it shows the transaction in another block than the one that is known. silent: no endpoint answered in time, or with something of use.",
    ),
    askedAt: Timestamp,
    blockHash: nullable(Hash),
    logs: list(OnChainLog, "At most 100."),
    more: count("Logs that were left out."),
    revert: nullable(OnChainRevert),
  },
);
