import { afterEach, describe, expect, it } from "vitest";
import { checkInvariants } from "../../support/invariants.ts";
import { range } from "../../support/transfers.ts";
import { SIGNER, transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const SEND = "eth_sendRawTransaction";
/**
 * Far more creates than the part of a lane's backlog that stays in memory (1,024), so the rest must be read from the
 * database again.
 */
const CREATES = 1_600;
/**
 * Polls once a second instead of four times, so that a failure of several simulated minutes is tested in a quarter of
 * the time.
 */
const SLOW_POLLS = { pollIntervalMs: 1_000 };

async function create(node: Awaited<ReturnType<World["startNode"]>>, count: number): Promise<void> {
  await world.settle(Promise.all(Array.from({ length: count }, () => node.node.api.create(transfer()))));
}

describe("broadcasts of transactions", () => {
  it("are repeated if their responses are lost", async () => {
    world = new World();
    const entry = await world.startNode();
    world.holdBlocks();
    entry.faults.inject({ kind: "loseReply" }, { method: SEND, times: 10 });
    await create(entry, 10);
    await world.until(
      () =>
        entry.events.filter((event) => event.type === "submit.answered" && event.answer === "alreadyKnown").length >=
        10,
    );
    world.releaseBlocks();
    await world.allSettled(10);
    checkInvariants(world);
    expect(world.rows().every(({ attempts }) => attempts.length === 1)).toBe(true);
  });

  it("are repeated with the same bytes if they did not reach the chain node", async () => {
    world = new World();
    const entry = await world.startNode();
    entry.faults.inject({ kind: "unavailable" }, { method: SEND, times: 25 });
    await create(entry, 5);
    await world.allSettled(5);
    checkInvariants(world);
    expect(world.rows().every(({ submitAttempts }) => submitAttempts > 1)).toBe(true);
    expect(world.chain.witness.length).toBe(5);
  });

  it("are repeated until the signer has funds", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry, 1);
    await world.allSettled(1);
    world.holdBlocks();
    await create(entry, 1);
    world.chain.setBalance(SIGNER, 0n);
    await create(entry, 2);
    await world.until(() => world.rows().some(({ lastError }) => lastError?.startsWith("insufficientFunds") === true));
    world.chain.setBalance(SIGNER, 10n ** 20n);
    world.releaseBlocks();
    await world.allSettled(4);
    checkInvariants(world);
    expect(world.rows().every(({ lastError }) => lastError === null)).toBe(true);
  });

  it("do not fill the history if they fail repeatedly in the same way", async () => {
    world = new World({ settings: SLOW_POLLS });
    const entry = await world.startNode();
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: SEND });
    await create(entry, 1);
    await world.clock.advance(120_000);
    const [row] = world.rows();
    expect(row?.submitAttempts).toBeGreaterThan(5);
    expect(row?.history.length).toBeLessThan(6);
    heal();
    await world.allSettled(1);
    checkInvariants(world);
  });

  it("count as the same failure if only numbers in the error message change", async () => {
    world = new World({ settings: SLOW_POLLS });
    const entry = await world.startNode();
    let balance = 0;
    type Submission = ReturnType<typeof world.chain.submit>;
    world.chain.submit = () => {
      balance++;
      return {
        accepted: false,
        refusal: { answer: "insufficientFunds", message: `have ${balance} want 21000` },
      } as Submission;
    };
    await create(entry, 1);
    await world.clock.advance(600_000);
    expect(world.rows()[0]?.submitAttempts).toBeGreaterThan(5);
    expect(world.rows()[0]?.history.length).toBeLessThan(6);
  });

  it("stay within the in-flight window", async () => {
    world = new World({ settings: { inFlightWindow: 50 } });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, CREATES);
    await world.clock.advance(5_000);
    expect(world.chain.witness.map(({ nonce }) => nonce)).toEqual(range(50));
    expect(world.rows().filter(({ state }) => state === "ALLOCATED").length).toBe(CREATES - 50);
    world.releaseBlocks();
    await world.allSettled(CREATES, 3_000_000);
    checkInvariants(world);
  });

  // protects [Sent again, priced again, stuck] src/application/loops/tend.ts
  it("are repeated after the resubmit interval if the node's mempool dropped the transaction", async () => {
    world = new World({ settings: { resubmitIntervalMs: 5_000 } });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 3);
    await world.until(() => world.chain.witness.length === 3);
    world.chain.dropAllTransactions();
    world.releaseBlocks();
    await world.allSettled(3);
    checkInvariants(world);
  });
});
