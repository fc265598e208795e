import { statement } from "./statement.ts";

export const readFeed = statement<FeedRow>(
  "read-feed",
  "SELECT f.epoch, f.last_seq, f.truncated_through, f.epoch_starts_after FROM fencepost.feed AS f WHERE f.only_row",
);

export interface FeedRow {
  readonly epoch: number;
  readonly last_seq: number;
  readonly truncated_through: number;
  readonly epoch_starts_after: number;
}
