import { statement } from "./statement.ts";

/** Intake rows whose request id already had a transaction with the same payload: their id becomes another name of it. */
export const aliasIntake = statement<unknown>(
  "alias-intake",
  `UPDATE fencepost.intake AS i
   SET alias_of = a.alias_of
   FROM json_to_recordset($1::json) AS a(intake_id bigint, alias_of uuid)
   WHERE i.intake_id = ANY ($2::bigint[]) AND i.intake_id = a.intake_id`,
);
