import { timesOf } from "../../../domain/cluster/notices.ts";
import { grouped } from "../../../domain/grouped.ts";
import { recordset } from "../rows/columns.ts";
import { writeNotices } from "../statements/notice.ts";
import type { Command } from "../statements/statement.ts";
import type { Plan } from "./plan.ts";

/** Foreign uses of keys, one row for each lane: a statement that merges repeats may meet a row once. */
export function noticesOf({ uses }: Pick<Plan, "uses">): readonly Command[] {
  if (uses.length === 0) return [];
  const rows = [...grouped(uses, ({ lane }) => lane.key).values()].map((all) => {
    const { chainId, signer } = (all[0] as (typeof all)[number]).lane.row;
    const evidence = all.map(({ at, nonce, through, txHash, txId }) => ({ at, nonce, through, txHash, txId }));
    return { chainId, signer, times: all.reduce((sum, use) => sum + timesOf(use), 0), evidence: evidence.reverse() };
  });
  return [{ statement: writeNotices, values: [recordset(rows)] }];
}
