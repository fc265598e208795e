import { type Static, Type } from "typebox";
import { COST_GROUPS } from "../../domain/figures/costs.ts";
import { Address, After, ChainId, Decimal, Price, SignedDecimal, Timestamp } from "./scalars.ts";
import { amount, count, described, list, named, nullable, object, oneOf, query, text } from "./shapes.ts";

/** Figures over time: history buckets, and costs of transactions. */

const Fees = described(
  Decimal,
  "Fees paid in wei: gas used × price, and amounts paid beside gas (blobs, rollup data).",
);
const CorrectedFees = described(
  SignedDecimal,
  "Fees paid in wei, less those of outcomes that a reorg withdrew in this time: below 0 if those were higher.",
);
const KeyName = nullable(
  text("Name of the API key that created the transactions; null: no key was required.", "checkout"),
);
const SignerName = nullable(text("Name of the signer in the configuration; null: it has none.", "payouts-2"));

const Level = object({ avg: Price, max: Price });

const HistoryBucket = named("HistoryBucket", {
  at: described(Timestamp, "Start of the bucket."),
  created: count("Transactions that got their nonce.", 61),
  completed: count("Transactions that became final; failed ones included.", 60),
  failed: count("Transactions that became FAILED_FINAL.", 1),
  stuck: count("Times that a transaction became STUCK."),
  reorged: count("Outcomes that a reorg withdrew."),
  finalityMs: nullable(
    object(
      { p50: amount("", 14_800), p95: amount("", 21_000) },
      "Time from create to final outcome of the transactions that became final, to 10 %; null: none did.",
    ),
  ),
  baseFee: nullable(
    described(Level, "Base fee of the chain's blocks in wei; null: none was seen, or there are several chains."),
  ),
  offered: nullable(
    described(
      Level,
      "Highest price per gas that the mined payloads offered in wei; null: none was mined, or there are several chains.",
    ),
  ),
  fees: CorrectedFees,
  troubles: list(
    object({ code: text("", "STUCK"), count: count("", 1) }),
    "Alerts that were raised in this time, by code.",
    [],
  ),
});

export const History = named(
  "History",
  "Figures over time, merged over all lanes that the query and the API key select.",
  {
    from: Timestamp,
    to: Timestamp,
    stepSeconds: count("Length of a bucket: 60, or a multiple of it.", 300),
    buckets: list(HistoryBucket, "Oldest first. A bucket in which nothing happened is left out."),
    keys: list(
      object({ key: KeyName, chainId: ChainId, completed: count("", 60), fees: CorrectedFees }),
      "Spend by API key, highest first.",
    ),
    signers: list(
      object({ signer: Address, name: SignerName, chainId: ChainId, completed: count("", 60), fees: CorrectedFees }),
      "Spend by signer, highest first: at most 20. Counted by the hour, so that it may cover a little more than `from` to `to`.",
    ),
  },
);
export type History = Static<typeof History>;

const From = described(Timestamp, "Start of the range, included. Without it: 24 hours before `to`.");
const To = described(Timestamp, "End of the range, excluded. Without it: now.");

export const HistoryQuery = query({
  chainId: ChainId,
  signer: Address,
  from: From,
  to: To,
  step: Type.Integer({
    minimum: 60,
    maximum: 86_400,
    description:
      "Length of a bucket in seconds, rounded up to a multiple of 60. Without it: such that there are at most 300. Older than a day, the least is 3,600.",
  }),
});
export type HistoryQuery = Static<typeof HistoryQuery>;

const Cost = named("Cost", {
  group: nullable(
    text(
      "Signer, name of the API key, day (UTC), or receiver; null: no API key was required, or the transaction deploys a contract.",
      "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    ),
  ),
  name: Type.Optional(text("Name in the configuration of a signer, or of a receiver that is one.", "payouts-2")),
  chainId: ChainId,
  transactions: count("Transactions of the group; those that are not final included.", 120),
  confirmed: count("", 117),
  failed: count("", 2),
  failedShare: amount("failed / (confirmed + failed); 0 if none is final.", 0.0168),
  fees: Fees,
  failedFees: described(Decimal, "Part of `fees` that was paid for transactions that failed."),
  value: described(Decimal, "Wei moved by mined payloads that succeeded."),
});

export const Costs = named("Costs", {
  by: oneOf(COST_GROUPS),
  from: Timestamp,
  to: Timestamp,
  items: list(Cost, "By chain, then highest fees first; by day: oldest first."),
  next: nullable(
    text(
      "Set if the range has more than 20,000 transactions: repeat the call with it as `after` and add the items up.",
    ),
  ),
});
export type Costs = Static<typeof Costs>;

export const CostsQuery = query({
  by: oneOf(COST_GROUPS, { default: "signer", description: "What the transactions are added up by." }),
  from: From,
  to: To,
  chainId: ChainId,
  signer: Address,
  after: After,
});
export type CostsQuery = Static<typeof CostsQuery>;
