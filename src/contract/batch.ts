import { type Static, Type } from "typebox";
import { CreatedItem, CreateTransaction } from "./create.ts";
import { Problem } from "./problem.ts";

export const BATCH_ITEMS_LIMIT = 1_000;

export const CreateBatch = Type.Object(
  { transactions: Type.Array(CreateTransaction, { maxItems: BATCH_ITEMS_LIMIT }) },
  { title: "CreateBatch", additionalProperties: false },
);
export type CreateBatch = Static<typeof CreateBatch>;

export const BatchResults = Type.Object(
  {
    results: Type.Array(Type.Union([CreatedItem, Problem]), {
      description: "One per transaction, in order. Partial success is normal: look at each status.",
    }),
  },
  { title: "BatchResults", additionalProperties: false },
);
export type BatchResults = Static<typeof BatchResults>;
