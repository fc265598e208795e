import { type Static, Type } from "typebox";
import { STATES } from "../../domain/transaction/transitions.ts";
import { Revision, Wait } from "./attention.ts";
import { Address, ChainId, Decimal, Nonce, Timestamp, TxId } from "./scalars.ts";
import { named, nullable, oneOf, query } from "./shapes.ts";

const count = Type.Integer({ minimum: 0 });
const perMinute = Type.Number({ minimum: 0, description: "Over the last five minutes." });
const seconds = Type.Number({ minimum: 0 });

export const ENDPOINT_STATUSES = ["up", "failing", "behind", "foreign", "unknown"] as const;

const ChainEndpoint = Type.Object({
  url: Type.String({ description: "Scheme and host; what may be a key in it is left out." }),
  status: oneOf(ENDPOINT_STATUSES, {
    description: "As the node that answers uses it. foreign: it serves another chain. unknown: nothing was asked yet.",
  }),
  behind: nullable(Type.Integer({ minimum: 0, description: "Blocks behind the highest head seen; null: not known." })),
});

const OverviewChain = named("OverviewChain", {
  chainId: ChainId,
  reachable: Type.Boolean(),
  head: nullable(count),
  headSince: nullable(
    Type.Unsafe<string>({
      ...Timestamp,
      description: "When the node that answers first saw that head, by its own clock.",
    }),
  ),
  blockSeconds: nullable(
    Type.Number({
      minimum: 0,
      description: "What a block usually takes; null: too few were seen, or they come as they like.",
    }),
  ),
  stalled: Type.Boolean({
    description: "The chain answers, and no block has come for ten times as long as one takes.",
  }),
  baseFee: nullable(Decimal),
  tip: nullable(
    Type.Unsafe<string>({
      ...Decimal,
      description: "What the last blocks took above it, as one was last asked; null: none was.",
    }),
  ),
  endpoints: Type.Array(ChainEndpoint),
  explorer: nullable(
    Type.String({
      description:
        "Base URL of a block explorer: `/tx/{hash}`, `/address/{address}` and `/block/{number}` are put behind it.",
    }),
  ),
});

export const Overview = named("Overview", {
  revision: Revision,
  asOf: Timestamp,
  lanes: count,
  states: Type.Object(
    Object.fromEntries(STATES.map((state) => [state, count])) as Record<(typeof STATES)[number], typeof count>,
    {
      description: "Over everything, by what is kept: of final ones, since the lane began.",
    },
  ),
  createdPerMinute: nullable(perMinute),
  completedPerMinute: nullable(perMinute),
  timeToFinalitySeconds: nullable(
    Type.Object({ p50: seconds, p95: seconds }, { description: "From create to outcome, of the last completions." }),
  ),
  oldestPending: nullable(
    Type.Object({
      txId: TxId,
      chainId: ChainId,
      signer: Address,
      nonce: nullable(Nonce),
      ageSeconds: seconds,
    }),
  ),
  chains: Type.Array(OverviewChain),
});
export type Overview = Static<typeof Overview>;

export const OverviewQuery = query({ revision: Revision, wait: Wait });
export type OverviewQuery = Static<typeof OverviewQuery>;
