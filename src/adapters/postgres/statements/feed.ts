import type { Lane } from "../../../domain/lane.ts";
import type { CompletionRecord, FeedPosition } from "../../../ports/query-store.ts";
import { type Flat, lists, names } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

const COMPLETION = `tx_id uuid, chain_id bigint, signer text, request_id text, nonce bigint, state text, sub_state text,
  settled boolean, tx_hash text` as const;

const MANY = "cardinality($1::uuid[])";

/**
 * Appends completions to the feed. It is the last statement before COMMIT, and sent together with it. The transaction
 * holds the feed's counter row until COMMIT, so numbers become visible in order and without gaps.
 */
export const appendCompletions = taking(COMPLETION)("append-completions")`
  WITH counter AS (
    UPDATE fencepost.feed AS f SET last_seq = f.last_seq + ${MANY} WHERE f.only_row RETURNING f.epoch, f.last_seq
  ), appended AS (
    INSERT INTO fencepost.completion (seq, epoch, ${names(COMPLETION)}, at)
    SELECT counter.last_seq - ${MANY} + c.place, counter.epoch, ${names(COMPLETION)}, now()
    FROM counter, (${lists(COMPLETION)}, generate_subscripts($1::uuid[], 1) AS place) AS c
    RETURNING 1
  )
  SELECT counter.last_seq, fencepost.require_rows((SELECT count(*) FROM appended), ${MANY}, 'completions') FROM counter`;

/** Reads the feed after a number. No completion with a lower number can appear later: see `appendCompletions`. */
export const readCompletions = statement<Flat<CompletionRecord>>("read-completions")`
  SELECT seq, epoch, ${names(COMPLETION)}, at
  FROM fencepost.completion AS c
  WHERE c.seq > $1
  ORDER BY c.seq
  LIMIT $2`;

export const readFeed = statement<FeedPosition>("read-feed")`
  SELECT f.epoch, f.last_seq, f.truncated_through, f.epoch_starts_after FROM fencepost.feed AS f WHERE f.only_row`;

/** Begins a new epoch of the feed ($1), with numbers above $2. */
export const beginEpoch = statement("begin-epoch")`
  UPDATE fencepost.feed AS f
  SET epoch = $1, last_seq = greatest(f.last_seq, $2), epoch_starts_after = greatest(f.last_seq, $2)
  WHERE f.only_row`;

/**
 * Records the next nonce of every lane when a new epoch begins. Written by the registration that begins the epoch,
 * before any node allocates.
 */
export const recordEpochFloors = statement("record-epoch-floors")`
  INSERT INTO fencepost.epoch_floor (chain_id, signer, next_nonce)
  SELECT l.chain_id, l.signer, l.next_nonce FROM fencepost.lane AS l WHERE l.next_nonce IS NOT NULL
  ON CONFLICT (signer, chain_id) DO UPDATE SET next_nonce = excluded.next_nonce`;

/**
 * Reads the next nonce that each of these lanes had when the epoch began; no rows for lanes that did not exist then.
 */
export const readEpochFloors = statement<EpochFloorRow>("read-epoch-floors")`
  SELECT e.chain_id, e.signer, e.next_nonce AS floor FROM fencepost.epoch_floor AS e
  WHERE e.signer = ANY ($1::text[]) AND e.chain_id = ANY ($2::bigint[])`;

export type EpochFloorRow = Lane & { readonly floor: number };
