/**
 * Costs of the transactions that were created in a range of time. The work of one call is bounded: it reads at most
 * `MOST_TRANSACTIONS`, in small pages, and returns the position at which the next call continues.
 */
import { defined } from "../../domain/defined.ts";
import { invalid } from "../../domain/errors.ts";
import {
  COST_GROUPS,
  type CostGroup,
  CostSums,
  failedShareOf,
  type TransactionCost,
} from "../../domain/figures/costs.ts";
import { ANYBODY, type Limits } from "../../domain/keys/principal.ts";
import type { Address } from "../../domain/lane.ts";
import type { CostFilter } from "../../ports/query-store.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { given } from "../requests/fields.ts";
import { parseInstant, parseSigner } from "../requests/normalise.ts";
import { openCursor, sealCursor } from "./transactions.ts";

export interface CostsQuery {
  readonly by?: CostGroup;
  readonly from?: string | Date;
  readonly to?: string | Date;
  readonly chainId?: number;
  readonly signer?: string;
  /** Cursor: `next` of the previous call. */
  readonly after?: string;
}

export const MOST_TRANSACTIONS = 20_000;
const READ_AT_ONCE = 1_000;
const A_DAY_MS = 86_400_000;

export async function costs(
  ports: Pick<CallPorts, "codec" | "store" | "clock" | "settings">,
  query: CostsQuery = {},
  limits: Limits = ANYBODY,
) {
  const { by = "signer", chainId } = query;
  if (!COST_GROUPS.includes(by)) throw invalid("by", `must be one of ${COST_GROUPS.join(", ")}`);
  const { from, to } = rangeOf(ports, query);
  const range = {
    within: limits,
    createdAfter: from,
    createdBefore: to,
    order: "oldest",
    limit: READ_AT_ONCE,
  } as const;
  const signer = given(query.signer, (value) => parseSigner(ports.codec, value, "signer"));
  const sums = new CostSums(by);
  let after = given(query.after, openCursor);
  let next: string | null = null;
  for (let read = 0; ; read += READ_AT_ONCE) {
    const filter: CostFilter = defined({ ...range, chainId, signer, after });
    const page = await ports.store.costs(filter);
    for (const cost of await Promise.all(page.items.map((row) => asMined(ports, row)))) sums.add(cost);
    if (page.next === null) break;
    after = page.next;
    if (read + READ_AT_ONCE >= MOST_TRANSACTIONS) {
      next = sealCursor(after);
      break;
    }
  }
  const isAddress = by === "signer" || by === "receiver";
  const nameOf = (group: string | null) =>
    isAddress && limits.signers?.has(group as Address) !== false
      ? ports.settings.signerNames?.get(group as Address)
      : undefined;
  const shownAs = (group: string | null) =>
    group !== null && isAddress ? ports.codec.checksum(group as Address) : group;
  const items = sums.all().map((sum) => {
    return defined({ ...sum, group: shownAs(sum.group), name: nameOf(sum.group), failedShare: failedShareOf(sum) });
  });
  return { by, from, to, items, next };
}

/** The range of a query: without an end, until now; without a beginning, the day before the end. */
export function rangeOf({ clock }: Pick<CallPorts, "clock">, query: Pick<CostsQuery, "from" | "to">) {
  const to = given(query.to, (value) => parseInstant(value, "to")) ?? clock.now();
  const from = given(query.from, (value) => parseInstant(value, "from")) ?? new Date(to.getTime() - A_DAY_MS);
  if (to <= from) throw invalid("to", "must be after from");
  return { from, to };
}

/** Adds to each completion what its transaction has cost. */
export async function withCosts<Item extends { readonly txId: string }>(
  ports: Pick<CallPorts, "codec" | "store">,
  items: readonly Item[],
): Promise<readonly (Item & { readonly cost: TransactionCost | null })[]> {
  const rows = await ports.store.costsOf(items.map(({ txId }) => txId));
  const costs = new Map((await Promise.all(rows.map((row) => asMined(ports, row)))).map((row) => [row.txId, row]));
  return items.map((item) => ({ ...item, cost: costs.get(item.txId) ?? null }));
}

/** Reads receiver and value of an operator's replacement from its signed bytes. */
async function asMined({ codec }: Pick<CallPorts, "codec">, cost: TransactionCost): Promise<TransactionCost> {
  if (cost.replacement === undefined) return cost;
  const { unsigned } = await codec.decodeTransaction(cost.replacement);
  return { ...cost, receiver: unsigned.to, value: unsigned.value };
}
