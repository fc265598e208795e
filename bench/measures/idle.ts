import { setTimeout as pause } from "node:timers/promises";
import type { Workbench } from "../environment/workbench.ts";
import type { Figure } from "../report.ts";

const SETTLE_MS = 3_000;

/** A node that has come up, holds its lane, follows the chain, and has nothing to do. */
export async function measureIdle(bench: Workbench): Promise<readonly Figure[]> {
  const setup = await bench.open();
  try {
    await pause(SETTLE_MS);
    const value = await setup.node.residentMiB();
    return [{ measure: "memory of an idle node", value, unit: "MiB", bar: { atMost: 250 } }];
  } finally {
    await setup.close();
  }
}
