import type { NamedAbi } from "../../../ports/abi-store.ts";
import { statement } from "./statement.ts";

export interface AbiRow {
  readonly items: readonly NamedAbi[];
  readonly changedAt: Date;
  readonly changedBy: string;
}

export const readAbis = statement<AbiRow>("read-abis")`
  SELECT a.items, a.changed_at, a.changed_by FROM fencepost.abi_document AS a WHERE a.only_row`;

/** Replaces all ABIs. $1: the items as JSON; $2: who replaced them. */
export const replaceAbis = statement<AbiRow>("replace-abis")`
  INSERT INTO fencepost.abi_document AS a (items, changed_at, changed_by)
  VALUES ($1::jsonb, clock_timestamp(), $2)
  ON CONFLICT (only_row) DO UPDATE
  SET items = EXCLUDED.items, changed_at = EXCLUDED.changed_at, changed_by = EXCLUDED.changed_by
  RETURNING a.items, a.changed_at, a.changed_by`;
