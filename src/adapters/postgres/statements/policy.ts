import type { Lane } from "../../../domain/lane.ts";
import { lists, names } from "../columns.ts";
import { counted, statement } from "./statement.ts";

const USE = "use_hour timestamptz, hour_value numeric, hour_cost numeric, day_value numeric, day_cost numeric";

/** What signers have used of their limits; asked behind the lock of their lanes it stays true. $1 signers, $2 chains. */
export const readLaneUse = statement<Lane & UseColumns>("read-lane-use")`
  SELECT l.chain_id, l.signer, ${names(USE)}
  FROM fencepost.lane AS l
  WHERE l.signer = ANY ($1::text[]) AND l.chain_id = ANY ($2::bigint[])`;

/** Of every lane that was ever counted for. */
export const listLaneUse = statement<Lane & UseColumns>("list-lane-use")`
  SELECT l.chain_id, l.signer, ${names(USE)}
  FROM fencepost.lane AS l
  WHERE l.use_hour IS NOT NULL AND l.signer > ''
  ORDER BY l.signer, l.chain_id`;

/** Of keys, $1 on the chains $2, as it stood when it was asked for. */
export const readKeyUse = statement<KeyUseRow>("read-key-use")`
  SELECT k.owner, k.chain_id, ${names(USE)}
  FROM fencepost.key_use AS k
  WHERE k.owner = ANY ($1::text[]) AND k.chain_id = ANY ($2::bigint[])`;

export const listKeyUse = statement<KeyUseRow>("list-key-use")`
  SELECT k.owner, k.chain_id, ${names(USE)}
  FROM fencepost.key_use AS k
  WHERE k.owner > ''
  ORDER BY k.owner, k.chain_id`;

export interface KeyUseRow extends UseColumns {
  readonly owner: string;
  readonly chainId: number;
}

/** The clock that windows are by. */
export const readPolicyClock = statement<{ readonly at: Date }>("read-policy-clock")`SELECT clock_timestamp() AS at`;

/** Null throughout: nothing was ever counted. */
export interface UseColumns {
  readonly useHour: Date | null;
  readonly hourValue: bigint | null;
  readonly hourCost: bigint | null;
  readonly dayValue: bigint | null;
  readonly dayCost: bigint | null;
}

const USED_LANES = lists(`chain_id bigint, signer text, ${USE}`);

/** Of lanes that are locked by now. $1 to $7, a place for each; $8 how many they are. */
export const updateLaneUse = counted("update-lane-use", "$8", "lanes with another use")`
  UPDATE fencepost.lane AS l
  SET use_hour = u.use_hour, hour_value = u.hour_value, hour_cost = u.hour_cost, day_value = u.day_value,
    day_cost = u.day_cost
  FROM (${USED_LANES}) AS u
  WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
    AND l.chain_id = u.chain_id AND l.signer = u.signer`;

const CHARGE =
  "tx_id uuid, chain_id bigint, ordinal integer, moves numeric, counted_in timestamptz, value numeric, cost numeric, settles boolean";

/** What was counted, in order. $1 to $8, a place for each. */
export const insertCharges = statement("insert-charges")`
  INSERT INTO fencepost.charge (${names(CHARGE)}) ${lists(CHARGE)}`;

export const readCharges = statement<ChargeRow>("read-charges")`
  SELECT c.tx_id, c.ordinal, c.moves, c.counted_in, c.value, c.cost, c.settles
  FROM fencepost.charge AS c
  WHERE c.tx_id = ANY ($1::uuid[])
  ORDER BY c.tx_id, c.charge_id`;

export interface ChargeRow {
  readonly txId: string;
  readonly ordinal: number;
  readonly moves: bigint;
  readonly countedIn: Date;
  readonly value: bigint;
  readonly cost: bigint;
  readonly settles: boolean;
}
