/** The receiver of a campaign: it takes signed outcomes only, and notices those that are missing or out of order. */
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock as clock } from "../../../../src/adapters/system/clock.ts";
import { Dice } from "../../../../src/main/dev/chaos/dice.ts";
import { openSubscriber, type Subscriber } from "../../../../src/main/dev/chaos/subscriber.ts";

const SECRET = Buffer.alloc(32, 7);

describe("a subscriber", () => {
  let subscriber: Subscriber;

  beforeEach(async () => {
    subscriber = await openSubscriber(clock, new Dice(1));
    subscriber.trust(`whsec_${SECRET.toString("base64")}`);
    subscriber.heal();
  });

  afterEach(() => subscriber.close());

  const deliver = async (seq: number, { signer = "0xaa", secret = SECRET, event = "completion" } = {}) => {
    const body = JSON.stringify({ seq, signer, chainId: 1 });
    const signature = createHmac("sha256", secret).update(`msg-${seq}.1700000000.${body}`).digest("base64");
    const headers = {
      ...{ "webhook-id": `msg-${seq}`, "webhook-timestamp": "1700000000", "fencepost-event": event },
      "webhook-signature": `v1,${signature}`,
    };
    return (await fetch(subscriber.url, { method: "POST", headers, body })).status;
  };
  const feed = (...seqs: readonly number[]) =>
    seqs.map((seq) => ({ seq, txId: `tx-${seq}`, state: "CONFIRMED", settled: true }) as const);

  it("finds nothing wrong if each outcome arrived, also if some arrived twice", async () => {
    for (const seq of [1, 2, 2, 1, 3]) expect(await deliver(seq)).toBe(204);
    expect(subscriber.delivered()).toBe(3);
    expect(subscriber.troubles(feed(1, 2, 3))).toEqual([]);
  });

  it("does not count what is no outcome", async () => {
    expect(await deliver(1, { event: "epoch" })).toBe(204);
    expect(subscriber.troubles(feed(1))).toEqual(["webhook: 1 was never delivered"]);
  });

  it("finds outcomes that never arrived", async () => {
    await deliver(2);
    expect(subscriber.troubles(feed(1, 2))).toEqual(["webhook: 1 was never delivered"]);
  });

  it("finds outcomes out of the order of their lane, and lets lanes overtake each other", async () => {
    for (const [seq, signer] of [
      [2, "0xaa"],
      [1, "0xaa"],
      [4, "0xbb"],
      [3, "0xaa"],
    ] as const)
      await deliver(seq, { signer });
    expect(subscriber.troubles(feed(1, 2, 3, 4))).toEqual(["webhook: 1 of 1:0xaa came after a later one"]);
  });

  it("refuses what is signed with another secret, and reports it", async () => {
    expect(await deliver(1, { secret: Buffer.alloc(32, 8) })).toBe(401);
    expect(subscriber.troubles([])).toEqual(["webhook: 1 deliveries without a signature"]);
  });
});
