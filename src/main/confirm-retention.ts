/** A question before a node deletes rows that it was not used to delete. */
import { confirm } from "../adapters/cli/confirm.ts";
import type { CliIo } from "../adapters/cli/terminal.ts";
import type { DatabaseFacts } from "../adapters/postgres/schema/examine.ts";
import { ageInWords } from "../domain/cluster/retention.ts";
import type { Config } from "./config/config.ts";

const HOUR_MS = 3_600_000;

/**
 * Asks on a terminal before `start` deletes old rows for the first time, or with a much shorter retention. A cluster
 * that runs with its retention deletes within minutes, so its oldest outcome is hardly older than the retention, and
 * nothing is asked. A database that cannot be read is no reason to ask: `start` reports it.
 */
export async function confirmRetention(
  { retention }: Pick<Config, "retention">,
  io: Pick<CliIo, "ask" | "now">,
  examine: () => Promise<Pick<DatabaseFacts, "kind"> & { readonly oldestOutcomeAt?: Date | null }>,
): Promise<void> {
  if (retention === null || io.ask === null) return;
  const { oldestOutcomeAt: oldest } = await examine();
  if (oldest == null) return;
  const ageMs = io.now().getTime() - oldest.getTime();
  const usualMs = retention.ageMs + Math.max(HOUR_MS, retention.ageMs / 10);
  if (ageMs < usualMs) return;
  const rows = `outcomes and final transactions older than ${ageInWords(retention.ageMs)}`;
  await confirm(
    io,
    `FENCEPOST_RETENTION deletes all ${rows} for good; the oldest is of ${oldest.toISOString()}. Start?`,
  );
}
