import { type Static, Type } from "typebox";
import { Address, ChainId, Nonce, STORY, TxId } from "./scalars.ts";
import { limit, list, named, object, oneOf, optional, query, text } from "./shapes.ts";

export const FOUND_KINDS = ["transaction", "signer", "reservation", "node"] as const;

const Found = named(
  "Found",
  {
    description: "With the ids that name it.",
    examples: [{ kind: "transaction", label: "order-42: CONFIRMED at nonce 7", txId: STORY.txId, chainId: 31337 }],
  },
  {
    kind: oneOf(FOUND_KINDS),
    label: text("For a list: what it is, and how it was found."),
    ...optional({
      txId: TxId,
      chainId: ChainId,
      signer: Address,
      nonce: Nonce,
      reservationId: Type.String({ format: "uuid" }),
      nodeId: text(),
    }),
  },
);

export const SearchResults = named("SearchResults", { items: list(Found) });
export type SearchResults = Static<typeof SearchResults>;

export const SearchQuery = object(
  {
    q: Type.String({
      minLength: 1,
      maxLength: 255,
      description:
        "A transaction's id, a hash of any attempt, a request id, a signer or its configured name, a nonce (`7`, or `0xf39F…:7` of one signer), a reservation's id, or a node; of ids, signers, names, request ids and nodes the beginning is enough.",
      examples: ["order-42"],
    }),
    ...query({ limit: limit(50, 20) }).properties,
  },
  { additionalProperties: false },
);
export type SearchQuery = Static<typeof SearchQuery>;
