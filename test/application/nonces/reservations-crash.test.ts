import { afterEach, describe, expect, it } from "vitest";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import type { Failpoint } from "../../../src/ports/failpoints.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { NONCE_FAILPOINTS } from "../../support/nonce-failpoints.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const callers = new FakeSigner(SIGNERS);

async function signed(nonce: number): Promise<Hex> {
  const fees = { type: "eip1559", maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n } as const;
  const content = { to: TO, data: "0x", value: 5n, gas: 21_000n, fees, accessList: [] } as const;
  const [made] = await callers.sign(SIGNER, [{ chainId: CHAIN_ID, nonce, ...content }]);
  return made?.rawTransaction as Hex;
}

/**
 * Repeats a request until it has a final response. CONFLICT means that an earlier try was carried out and its response
 * lost.
 */
async function surely<T>(ask: () => Promise<T>): Promise<T | null> {
  for (;;) {
    const answer = await Promise.race([
      ask().catch((error: unknown) =>
        error instanceof FencepostError && error.code === "CONFLICT" ? "over" : "again",
      ),
      world.clock.sleep(2_000).then(() => "again"),
    ]);
    if (answer === "over") return null;
    if (answer !== "again") return answer as T;
    await world.clock.sleep(500);
  }
}

/**
 * Uses one reservation, releases one, and lets one expire. The signer refuses one transaction. Further transactions
 * have nonces between these.
 */
async function story(alive: () => WorldNode, name: string): Promise<void> {
  const api = () => alive().node.api;
  const reserve = (which: string, ttl: string) =>
    surely(() => api().reserveNonce({ signer: SIGNER, ttl, requestId: `${name} ${which}` }));
  const create = (which: string, value = 1) => {
    const payload = { ...(transfer().payload as object), value: String(value) };
    return surely(() => api().create(transfer({ requestId: `${name} ${which}`, payload })));
  };
  const forgotten = await reserve("forgotten", "1s");
  await create("first");
  const kept = await reserve("kept", "10m");
  const back = await reserve("back", "10m");
  await Promise.all([create("refused", 666), create("above"), create("above all")]);
  if (back !== null) await surely(() => api().releaseNonce(back.reservation.reservationId));
  const { reservationId, nonce } = kept?.reservation ?? { reservationId: "", nonce: 0 };
  const rawTransaction = await signed(nonce);
  await surely(() => api().submitReserved(reservationId, { rawTransaction }));
  await create("last");
  expect(forgotten).not.toBeNull();
}

function start(failpoint: Failpoint, nth: number, onCrash: () => void): Promise<WorldNode> {
  let passed = 0;
  const starting = world.startNode({
    failpoint: (name) => {
      if (name !== failpoint || ++passed !== nth) return undefined;
      onCrash();
      world.crash(world.nodes[0] as WorldNode);
      return new Promise(() => undefined);
    },
  });
  return starting;
}

describe.each(NONCE_FAILPOINTS)("a crash right after %s", (failpoint) => {
  it.each([1, 2])("leaves every nonce with exactly one transaction (occurrence %i)", async (nth) => {
    // With an in-flight window of one, only the lane's lowest open transaction is signed. Later transactions may
    // still move to another nonce.
    world = new World({ settings: { holePolicy: "heal", inFlightWindow: 1 } });
    let crashed = false;
    const refuse = (entry: WorldNode) => entry.signer.refuse(({ value }) => value === 666n);
    const first = await start(failpoint, nth, () => {
      crashed = true;
    });
    refuse(first);
    const second = { current: null as WorldNode | null };
    const alive = (): WorldNode => (crashed && second.current !== null ? second.current : first);
    const running = story(alive, `${failpoint} ${nth}`);
    let isDone = false;
    void running.finally(() => {
      isDone = true;
    });
    await world.until(() => crashed || isDone, 300_000);
    if (!crashed) await world.clock.advance(30_000);
    second.current = await world.startNode();
    refuse(second.current);
    await world.settle(running, 600_000);
    const open = () => world.rows().filter(({ state }) => state !== "CONFIRMED" && state !== "FAILED_FINAL");
    await world.until(() => open().length === 0, 600_000);
    await world.clock.advance(30_000);
    checkInvariants(world);
    const { state: stored } = world.database;
    const states = [...stored.reservations()].map(({ state }) => state).sort();
    expect(states).toEqual(["EXPIRED", "RELEASED", "SUBMITTED"]);
    const confirmed = world.rows().filter(({ state }) => state === "CONFIRMED");
    expect(confirmed).toHaveLength(5);
    expect(world.rows().filter(({ subState }) => subState === "REJECTED")).toHaveLength(1);
    // Holes (nonces that no transaction holds) are all above the mined nonces.
    const mined = world.chain.account(SIGNER).nonce;
    for (const { nonce } of stored.holes()) expect(nonce).toBeGreaterThanOrEqual(mined);
    if (nth === 1) expect(crashed, "the failpoint was never passed").toBe(true);
  });
});
