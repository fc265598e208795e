import { afterEach, expect, test } from "vitest";
import { Dice } from "../../../../src/main/dev/chaos/dice.ts";
import type { Member } from "../../../../src/main/dev/chaos/faults.ts";
import { startLoad } from "../../../../src/main/dev/chaos/load.ts";
import { deferred } from "../../../support/deferred.ts";
import { createHastyClock } from "../../../support/hasty-clock.ts";
import { type ServiceServer, startServiceServer } from "../../../support/service-server.ts";

const SIGNER = "0x90f79bf6eb2c4f870365e785982e1f101e93b906";
const ACCOUNT = { address: SIGNER, privateKey: `0x${"1".repeat(64)}` } as const;
const REFUSED = { status: 404, body: { code: "NOT_FOUND", status: 404, title: "not found" } };

let node: ServiceServer;
afterEach(() => node.close());

test("the load of a campaign ends once transactions that were answered late are approved or rejected, too", async () => {
  const answered = deferred();
  const awaiting = new Set<string>();
  const stopped = deferred();
  let looks = 0;
  node = await startServiceServer(async ({ method, path, body }) => {
    const [, txId = "", action] = /\/tx\/([^/?]+)\/(approve|reject)$/.exec(path) ?? [];
    if (action !== undefined) {
      awaiting.delete(txId);
      return { status: 202, body: { txId } };
    }
    if (method === "GET" && path.startsWith("/api/v1/tx?")) {
      const items = [...awaiting].map((each) => ({ txId: each, state: "CREATED", subState: "AWAITING_APPROVAL" }));
      looks++;
      // The load is stopped during a look; the next look is the first one that can know it.
      if (looks === 1) stopped.resolve(load.stop());
      if (looks === 2) answered.resolve();
      return { body: { items, next: null } };
    }
    if (method !== "POST" || path !== "/api/v1/tx") return REFUSED;
    await answered.promise;
    const { requestId } = JSON.parse(body) as { readonly requestId: string };
    awaiting.add(requestId);
    return { status: 202, body: { txId: requestId, signer: SIGNER, requestId, state: "CREATED" } };
  });
  const member = { name: "node-1", node: () => ({ url: node.url }) } as unknown as Member;
  const load = startLoad({
    clock: createHastyClock(20),
    dice: new Dice(1),
    ...{ members: [member], accounts: [ACCOUNT], chainId: 31_337, recipient: SIGNER, rate: 8 },
    onAccepted: () => undefined,
  });
  await stopped.promise;
  expect(load.record.promised.length).toBeGreaterThan(0);
  expect(awaiting.size).toBe(0);
});
