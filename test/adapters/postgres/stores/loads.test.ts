import { describe, expect, it } from "vitest";
import type { Connections } from "../../../../src/adapters/postgres/session/connections.ts";
import type { DurableRuntime } from "../../../../src/adapters/postgres/session/durably.ts";
import type { Command } from "../../../../src/adapters/postgres/statements/statement.ts";
import { leftRequestsIn } from "../../../../src/adapters/postgres/stores/left-requests.ts";
import { loadsFrom } from "../../../../src/adapters/postgres/stores/loads.ts";
import { aLane } from "../../../support/lane-samples.ts";

/** Fake connections to a database without pending work; records every statement sent. */
function emptyDatabase() {
  const sent: { readonly name: string; readonly bytes: number }[] = [];
  let transactions = 0;
  const connections = {
    read: async (...commands: readonly Command[]) => {
      transactions++;
      return commands.map(({ name, values }) => {
        sent.push({ name: name.replace("fencepost:", ""), bytes: JSON.stringify(values).length });
        return [];
      });
    },
  } as unknown as Connections;
  return { connections, loads: loadsFrom(connections), sent, transactions: () => transactions };
}

describe("reads for ten thousand lanes", () => {
  const lanes = Array.from({ length: 10_000 }, () => aLane());

  // protects [Many lanes] src/adapters/postgres/statements/intake.ts, src/application/loops/node-core.ts
  it("search for pending requests of any lane in one query, without a list of lanes", async () => {
    const { connections, sent, transactions } = emptyDatabase();
    const { whatWaits } = leftRequestsIn(connections, { connections } as DurableRuntime);
    expect(await whatWaits()).toEqual({ intents: false, requests: false });
    expect(sent).toEqual([{ name: "find-what-waits", bytes: 2 }]);
    expect(transactions()).toBe(1);
  });

  it("look up request ids of all lanes in one transaction", async () => {
    const { loads, sent, transactions } = emptyDatabase();
    expect(await loads.findByRequestIds(lanes.map((lane) => ({ lane, requestIds: ["a"] })))).toEqual([]);
    expect(transactions()).toBe(1);
    expect(sent.map(({ name }) => name)).toEqual(["find-requests", "find-waiting-requests", "find-spent"]);
  });
});
