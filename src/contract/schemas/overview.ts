import type { Static } from "typebox";
import { STATES } from "../../domain/transaction/transitions.ts";
import { Revision, Wait } from "./attention.ts";
import { Address, BlockNumber, ChainId, Nonce, Price, Timestamp, TxId } from "./scalars.ts";
import { amount, count, described, list, named, nullable, object, oneOf, query, text, truth } from "./shapes.ts";

const perMinute = amount("Over the last five minutes.", 61.4);
const seconds = amount("", 26.1);

export const ENDPOINT_STATUSES = ["up", "failing", "behind", "foreign", "unknown"] as const;

const ChainEndpoint = object({
  url: text("Scheme and host; what may be a key in it is left out.", "https://rpc.example.org"),
  status: oneOf(
    ENDPOINT_STATUSES,
    "As the node that answers uses it. foreign: it serves another chain. unknown: nothing was asked yet.",
  ),
  behind: nullable(count("Blocks behind the highest head seen; null: not known.", 0)),
});

const OverviewChain = named("OverviewChain", {
  chainId: ChainId,
  reachable: truth("", true),
  head: nullable(BlockNumber),
  headSince: nullable(described(Timestamp, "When the node that answers first saw that head, by its own clock.")),
  blockSeconds: nullable(amount("What a block usually takes; null: too few were seen, or they come as they like.", 12)),
  stalled: truth("The chain answers, and no block has come for ten times as long as one takes."),
  baseFee: nullable(Price),
  tip: nullable(described(Price, "What the last blocks took above it, as one was last asked; null: none was.")),
  endpoints: list(ChainEndpoint),
  explorer: nullable(
    text("Base URL of a block explorer: `/tx/{hash}`, `/address/{address}` and `/block/{number}` are put behind it."),
  ),
});

export const Overview = named("Overview", {
  revision: Revision,
  asOf: Timestamp,
  lanes: count("", 3),
  states: object(
    Object.fromEntries(STATES.map((state) => [state, count()])) as Record<
      (typeof STATES)[number],
      ReturnType<typeof count>
    >,
    "Over everything, by what is kept: of final ones, since the lane began.",
  ),
  createdPerMinute: nullable(perMinute),
  completedPerMinute: nullable(perMinute),
  timeToFinalitySeconds: nullable(
    object({ p50: seconds, p95: seconds }, "From create to outcome, of the last completions."),
  ),
  oldestPending: nullable(
    object({ txId: TxId, chainId: ChainId, signer: Address, nonce: nullable(Nonce), ageSeconds: seconds }),
  ),
  chains: list(OverviewChain),
});
export type Overview = Static<typeof Overview>;

export const OverviewQuery = query({ revision: Revision, wait: Wait });
export type OverviewQuery = Static<typeof OverviewQuery>;
