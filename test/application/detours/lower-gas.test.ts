import { afterEach, describe, expect, it } from "vitest";
import type { FencepostError } from "../../../src/domain/errors.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNER, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

const CAP = 16_777_216n;
/** Gas that the contract needs. With the usual margin of a fifth added, it exceeds CAP. */
const NEEDED = 14_191_170n;

let world: World;
afterEach(() => world.close());

/** A chain with a gas cap per transaction that no node knows yet, and a contract that needs nearly the whole cap. */
async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World({ ...options, chain: { transactionGasCap: CAP, ...options.chain } });
  world.chain.burnGasAt(TO, NEEDED - 21_064n);
  return world.startNode();
}

const call = (payload: Record<string, unknown> = {}) => ({
  signer: SIGNER,
  payload: { to: TO, data: "0xaabbccdd", ...payload },
});
const create = ({ node }: WorldNode, request: Parameters<WorldNode["node"]["api"]["create"]>[0]) =>
  world.settle(node.api.create(request));
const row = (txId: string) => world.rows().find((each) => each.txId === txId);
const elsewhere = () => transfer({ payload: { ...(transfer().payload as object), to: SIGNER } });
const states = () => world.database.state.completions.map(({ state }) => state);

describe("a transaction signed before the gas cap was known", () => {
  // protects [Holes] src/application/detours/reprice.ts, src/application/stages/4-broadcast/note-answer.ts
  it.each(["move", "heal"] as const)("is signed again with less gas (holePolicy %s)", async (holePolicy) => {
    const entry = await start({ settings: { holePolicy } });
    const first = await create(entry, call());
    const behind = await create(entry, elsewhere());
    await world.allSettled(2);
    expect(row(first.txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    expect(row(first.txId)?.attempts.map(({ kind, gas }) => ({ kind, gas }))).toEqual([
      { kind: "initial", gas: (NEEDED * 6n) / 5n },
      { kind: "reprice", gas: CAP },
    ]);
    const [initial, lowered] = row(first.txId)?.attempts ?? [];
    expect(lowered?.fees, "at the same price").toEqual(initial?.fees);
    expect(row(behind.txId)).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    expect(states()).toEqual(["CONFIRMED", "CONFIRMED"]);
    checkInvariants(world);
  });

  // protects [Holes] src/application/detours/reprice.ts, src/application/stages/4-broadcast/note-answer.ts
  it("makes the cap known for later transactions", async () => {
    const entry = await start();
    await create(entry, call());
    await world.allSettled(1);
    const next = await create(entry, call());
    expect(row(next.txId)?.attempts.map(({ gas }) => gas) ?? []).not.toContain((NEEDED * 6n) / 5n);
    await world.allSettled(2);
    expect(row(next.txId)?.attempts.map(({ gas }) => gas)).toEqual([CAP]);
    world.chain.burnGasAt(TO, CAP);
    const refused = await world.settle(entry.node.api.create(call()).catch((error: FencepostError) => error));
    expect(refused).toMatchObject({ code: "SUBMISSION_REJECTED", extras: { reason: "GAS_OVER_BLOCK" } });
    expect(world.rows()).toHaveLength(2);
  });

  // protects [Holes] src/application/detours/reprice.ts
  it("becomes STUCK if the caller set the gas", async () => {
    const entry = await start();
    const { txId } = await create(entry, call({ gas: 20_000_000 }));
    await world.until(() => row(txId)?.state === "STUCK");
    expect(row(txId)?.attempts).toHaveLength(1);
    expect(row(txId)?.history.at(-1)?.reason).toMatch(/transaction gas limit too high \(cap: 16777216/);
  });

  it("is not signed again if it now needs more gas than the cap", async () => {
    const entry = await start();
    const { txId } = await create(entry, call());
    world.chain.burnGasAt(TO, CAP);
    await world.until(() => row(txId)?.state === "STUCK");
    expect(row(txId)?.attempts).toHaveLength(1);
  });

  // protects [Holes] src/application/detours/holes.ts
  it("waits for a gas estimate before holePolicy applies", async () => {
    const entry = await start({ settings: { holePolicy: "heal" } });
    const { txId } = await create(entry, call());
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_estimateGas" });
    const answers = () => entry.events.filter((event) => event.type === "submit.answered" && event.txId === txId);
    await world.until(() => answers().length >= 3, 600_000);
    expect(row(txId)?.attempts).toHaveLength(1);
    entry.faults.heal();
    await world.allSettled(1);
    expect(row(txId)).toMatchObject({ state: "CONFIRMED", attempts: [{ kind: "initial" }, { kind: "reprice" }] });
  });

  // protects [Holes] src/application/detours/reprice.ts
  it("is signed again only once", async () => {
    const entry = await start({ chain: { transactionGasCap: null } });
    let cap = 17_000_000n;
    world.chain.submit = () => {
      cap -= 1_000n;
      const message = `transaction gas limit too high (cap: ${cap}, tx: ${cap + 1_000n})`;
      return { accepted: false, refusal: { answer: "rejected", message, gasCap: cap } };
    };
    const { txId } = await create(entry, call());
    await world.until(() => row(txId)?.state === "STUCK", 600_000);
    expect(row(txId)?.attempts).toHaveLength(2);
  });

  it("is not signed again if maxAttempts is 1", async () => {
    const entry = await start({ settings: { maxAttempts: 1 } });
    const { txId } = await create(entry, call());
    await world.until(() => row(txId)?.state === "STUCK");
    expect(row(txId)?.attempts).toHaveLength(1);
  });
});
