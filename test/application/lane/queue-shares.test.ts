import { describe, expect, it } from "vitest";
import { QueueShares } from "../../../src/application/lane/queue-shares.ts";
import type { Change } from "../../../src/domain/ledger/index.ts";
import type { OpenTransaction } from "../../../src/ports/lane-store.ts";
import { deferred } from "../../support/deferred.ts";
import { aLane, anIntent, step } from "../../support/lane-samples.ts";

const PENDING = { state: "TRACKING", subState: "PENDING" } as const;
const MINED = { state: "TRACKING", subState: "MINED" } as const;

function moved(txId: string, event: "mine" | "withdraw" | "confirm"): Change {
  const item = step(txId, event === "mine" ? PENDING : MINED, event);
  const row = { nonce: 1, live: true, attemptCount: 1, acceptedOrdinal: null, step: 1, repeats: false };
  return { kind: "moved", item, ...row, at: new Date(0) };
}

function allocated(txId: string, owner: string): Change {
  const intent = { ...anIntent(aLane()), txId, owner };
  return { kind: "allocated", intent, nonce: 1, intake: null, at: new Date(0) };
}

describe("the count of an API key's pending transactions on a lane", () => {
  it.each<readonly [string, readonly Change[], number]>([
    ["nothing else happens", [], 2],
    ["one is mined, and was read as pending", [moved("a", "mine")], 1],
    ["one is mined and then withdrawn by a reorg", [moved("a", "mine"), moved("a", "withdraw")], 2],
    ["one that was read as mined is final", [moved("c", "confirm")], 2],
    ["one that was read as mined is withdrawn by a reorg", [moved("c", "withdraw")], 3],
    ["one more is allocated", [allocated("d", "shop")], 3],
    ["one more is allocated, and mined at once", [allocated("d", "shop"), moved("d", "mine")], 2],
    ["one of another key is allocated", [allocated("d", "wallet")], 2],
    // protects [Attacks] src/application/lane/queue-shares.ts, src/application/stages/1-create/create.ts, src/adapters/postgres/stores/loads.ts
  ])("is correct if this happens during the read: %s", async (_, changes, size) => {
    const shares = new QueueShares();
    const reading = deferred<readonly OpenTransaction[]>();
    const asked = shares.of("shop", () => reading.promise);
    shares.fold(changes);
    reading.resolve([
      { txId: "a", isMined: false },
      { txId: "b", isMined: false },
      { txId: "c", isMined: true },
    ]);
    expect((await asked).size).toBe(size);
  });
});
