import { type Static, Type } from "typebox";
import type { CompletionState } from "../domain/transitions.ts";
import { Address, ChainId, Hash, Nonce, nullable, oneOf, RequestId, Timestamp, TxId } from "./scalars.ts";
import { SubStateWord } from "./transactions.ts";

const COMPLETIONS_LIMIT = 1_000;
const COMPLETIONS_WAIT_LIMIT_SECONDS = 30;

const COMPLETION_STATES = [
  "CONFIRMED",
  "FAILED_FINAL",
  "STUCK",
  "REORGED",
] as const satisfies readonly CompletionState[];

export const Completion = Type.Object(
  {
    seq: Type.Integer({ minimum: 1, description: "Gapless within an epoch, in commit order." }),
    epoch: Type.Integer({ minimum: 1, description: "The epoch it was written in: the page's, or an older one." }),
    txId: TxId,
    chainId: ChainId,
    signer: Address,
    requestId: nullable(RequestId),
    nonce: nullable(Nonce),
    state: oneOf(COMPLETION_STATES),
    subState: nullable(SubStateWord),
    settled: Type.Boolean({ description: "False: the payload may still execute; do not pay again under another id." }),
    txHash: nullable(Hash),
    at: Timestamp,
  },
  { title: "Completion" },
);
export type Completion = Static<typeof Completion>;

export const CompletionsPage = Type.Object(
  {
    epoch: Type.Integer({
      description: "The feed's, for the next `epoch`. Changes only when the database's history did.",
    }),
    items: Type.Array(Completion),
    next: Type.Integer({ minimum: 0, description: "The value for the next `after`." }),
  },
  { title: "CompletionsPage" },
);
export type CompletionsPage = Static<typeof CompletionsPage>;

export const CompletionsQuery = Type.Object(
  {
    after: Type.Optional(
      Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: "0 is the beginning." }),
    ),
    epoch: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: COMPLETIONS_LIMIT, default: 100 })),
    wait: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: COMPLETIONS_WAIT_LIMIT_SECONDS,
        default: 0,
        description: "Seconds to wait for a first item where there is none yet.",
      }),
    ),
  },
  { additionalProperties: false },
);
export type CompletionsQuery = Static<typeof CompletionsQuery>;
