import type { AbiDocument, AbiStore } from "../../../ports/abi-store.ts";
import { ask, type Reading } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import * as abi from "../statements/abi.ts";
import { writeRows } from "./leases.ts";

const NONE: AbiDocument = { items: [], changedAt: null, changedBy: null };

/** Implements AbiStore. The document is one row, which the last writer replaces. */
export function abisIn(reading: Reading, leasing: DurableRuntime): AbiStore {
  return {
    abis: async () => (await ask(reading, abi.readAbis()))[0] ?? NONE,
    replaceAbis: async (items, changedBy) => {
      const [stored] = await writeRows(leasing, abi.replaceAbis(JSON.stringify(items), changedBy));
      return stored ?? NONE;
    },
  };
}
