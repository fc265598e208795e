/**
 * A caller reserves a nonce and never uses it. The transactions above it are still sent, and no caller loses a payment.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { ReserveRequest } from "../../../src/application/api.ts";
import type { FencepostError } from "../../../src/domain/errors.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import type { Reservation } from "../../../src/domain/transaction/reservations.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { createFakeCodec } from "../../support/fake-codec.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, transfer, World, type WorldNode } from "../../support/world.ts";

const GWEI = 1_000_000_000n;
/** A base fee at which callers' transactions, signed at 20 gwei, stay in the mempool unmined. */
const DEAR = 100n * GWEI;

let world: World;
afterEach(() => world.close());

const callers = new FakeSigner(SIGNERS);

async function signed(nonce: number, value = 5n): Promise<Hex> {
  const fees = { type: "eip1559", maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI } as const;
  const content = { to: TO, data: "0x", value, gas: 21_000n, fees, accessList: [] } as const;
  const [made] = await callers.sign(SIGNER, [{ chainId: CHAIN_ID, nonce, ...content }]);
  return made?.rawTransaction as Hex;
}

const hashOf = async (raw: Hex) => (await createFakeCodec().decodeTransaction(raw)).txHash;

async function reserve({ node }: WorldNode, wishes: ReserveRequest = {}, owner = "ann"): Promise<Reservation> {
  return (await world.settle(node.api.reserveNonce({ signer: SIGNER, ttl: "2s", ...wishes }, owner))).reservation;
}

async function create({ node }: WorldNode, count = 1): Promise<readonly string[]> {
  const made = await world.settle(Promise.all(Array.from({ length: count }, () => node.api.create(transfer()))));
  return made.map(({ txId }) => txId);
}

const refusal = (promise: Promise<unknown>) => world.refusal(promise);
const row = (txId: string | null | undefined) => world.rows().find((each) => each.txId === txId);
const stateOf = (reservationId: string) => world.database.state.reservation(reservationId)?.state;
const placeholders = () => world.rows().filter(({ attempts }) => attempts[0]?.kind === "placeholder");
const expires = (reservationId: string) => world.until(() => stateOf(reservationId) === "EXPIRED", 700_000);

describe("a nonce with an expired reservation", () => {
  // protects [Reservations] src/application/detours/holes.ts, src/application/detours/holes.ts
  it("is filled by a placeholder by default", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry, { ttl: "1s" });
    const behind = await create(entry, 3);
    await world.allSettled(4);
    for (const txId of behind) expect(row(txId)?.state).toBe("CONFIRMED");
    const { txId, state } = await entry.node.api.reservation(reservationId);
    expect(state).toBe("EXPIRED");
    expect(row(txId)).toMatchObject({ nonce, subState: "CANCELLED", attempts: [{ kind: "placeholder" }] });
    expect(row(txId)?.owner, "its cost is the one's who reserved").toBe("ann");
    const { history } = await entry.node.api.transaction(txId as string, ["history"]);
    expect(history?.[1]?.decision).toMatchObject({ actor: "policy", audit: { reservationId, owner: "ann" } });
    checkInvariants(world);
  });

  // protects [Reservations] src/application/detours/holes.ts
  it("is not filled while no transaction waits above it", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId } = await reserve(entry);
    await expires(reservationId);
    await world.clock.advance(30_000);
    expect(world.rows()).toEqual([]);
    await create(entry);
    await world.allSettled(2);
    expect(placeholders()).toHaveLength(1);
  });

  // protects [Reservations] src/domain/pace/lane-pace.ts, src/application/detours/holes.ts
  it("is filled only after a search for the caller's transaction", async () => {
    world = new World();
    const entry = await world.startNode();
    const startedMs = world.clock.monotonicMs();
    const { reservationId } = await reserve(entry, { ttl: "30s" });
    const [behind] = await create(entry);
    await expires(reservationId);
    await world.until(() => world.clock.monotonicMs() - startedMs > 59_500);
    expect(placeholders()).toEqual([]);
    expect(row(behind)?.state, "nobody is alarmed meanwhile").toBe("TRACKING");
    const { causes } = await world.settle(entry.node.api.explain(behind as string));
    expect(causes.map(({ code }) => code)).toContain("HOLE_BELOW");
    await world.allSettled(2);
    expect(world.clock.monotonicMs() - startedMs).toBeLessThan(70_000);
  });

  // protects [Reservations] src/domain/pace/lane-pace.ts, src/application/detours/holes.ts
  it("is checked together with other expired reservations", async () => {
    world = new World();
    const entry = await world.startNode();
    const startedMs = world.clock.monotonicMs();
    for (let many = 0; many < 8; many++) await reserve(entry, { ttl: "30s" });
    await create(entry);
    await world.allSettled(9);
    expect(world.clock.monotonicMs() - startedMs).toBeLessThan(80_000);
    checkInvariants(world);
  });

  it("is not filled if the chain node holds the signer's key", async () => {
    world = new World({ nodeSigners: [SIGNER], signers: [] });
    const entry = await world.startNode();
    await reserve(entry);
    const [behind] = await create(entry);
    await world.until(() => row(behind)?.state === "STUCK");
    await world.clock.advance(60_000);
    expect(placeholders()).toEqual([]);
  });
});

const SOURCES = ["pool", "look-up", "pending count"] as const;
type Source = (typeof SOURCES)[number];
const METHODS = {
  pool: "txpool_contentFrom",
  "look-up": "eth_getTransactionBySenderAndNonce",
  "pending count": "eth_getTransactionCount",
} as const;

/** Disables all but one of the sources from which the node can learn of a transaction that waits in a mempool. */
function leaveOnly({ rpc, faults }: WorldNode, source: Source): void {
  faults.lookUpByNonce(source === "look-up");
  const counts = rpc.transactionCountEverywhere.bind(rpc);
  if (source !== "pool") rpc.pooled = async () => null;
  if (source !== "pending count") rpc.transactionCountEverywhere = (address, atBlock) => counts(address, atBlock);
}

describe("a caller's transaction at an expired reservation's nonce", () => {
  const hidden = async (entry: WorldNode) => {
    const { reservationId, nonce } = await reserve(entry);
    const [behind] = await create(entry);
    world.chain.setBaseFee(DEAR);
    const rawTransaction = await signed(nonce);
    world.chain.submit(rawTransaction);
    await expires(reservationId);
    return { reservationId, nonce, behind, rawTransaction };
  };

  // protects [Reservations] src/application/detours/holes.ts
  it.each(SOURCES)("is found even if only the %s shows it", async (source) => {
    world = new World();
    const entry = await world.startNode();
    leaveOnly(entry, source);
    await hidden(entry);
    await world.clock.advance(60_000);
    expect(placeholders()).toEqual([]);
    world.chain.dropAllTransactions();
    await world.until(() => placeholders().length === 1);
  });

  // protects [Reservations] src/application/detours/holes.ts
  it.each(SOURCES)("is assumed to exist while the %s cannot be read", async (source) => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId } = await reserve(entry);
    await create(entry);
    await expires(reservationId);
    const back = entry.faults.inject({ kind: "unavailable" }, { method: METHODS[source] });
    await world.clock.advance(60_000);
    expect(placeholders()).toEqual([]);
    back();
    await world.allSettled(2);
    checkInvariants(world);
  });

  // protects [Reservations] src/domain/pace/lane-pace.ts, src/application/detours/holes.ts
  it("is searched for again if it was found and then disappeared", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry, { ttl: "30s" });
    await create(entry);
    await expires(reservationId);
    await world.clock.advance(20_000);
    world.chain.setBaseFee(DEAR);
    world.chain.submit(await signed(nonce));
    await world.clock.advance(5_000);
    world.chain.dropAllTransactions();
    await world.clock.advance(25_000);
    expect(placeholders()).toEqual([]);
    await world.until(() => placeholders().length === 1, 20_000);
  });

  it("is reported if it is mined instead of the placeholder", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry);
    const [behind] = await create(entry);
    world.holdBlocks();
    await world.until(() => placeholders().length === 1);
    const rawTransaction = await signed(nonce);
    world.chain.reorg(1, { include: [rawTransaction] });
    world.releaseBlocks();
    await world.allSettled(2);
    expect(row(behind)?.state).toBe("CONFIRMED");
    const { txId } = await entry.node.api.reservation(reservationId);
    const txHash = await hashOf(rawTransaction);
    expect(row(txId)).toMatchObject({ state: "FAILED_FINAL", subState: "NONCE_CONSUMED_EXTERNALLY" });
    expect(row(txId)?.attempts.at(-1)).toMatchObject({ txHash, foreign: true });
  });
});

describe("a caller whose reservation expired", () => {
  it("may still submit its signed transaction while the nonce is unused", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry, { ttl: "30s" });
    const [behind] = await create(entry);
    await expires(reservationId);
    await world.clock.advance(10_000);
    const rawTransaction = await signed(nonce);
    const made = await world.settle(entry.node.api.submitReserved(reservationId, { rawTransaction }));
    expect(made).toMatchObject({ outcome: "created", nonce });
    await world.allSettled(2);
    for (const txId of [made.txId, behind]) expect(row(txId)?.state).toBe("CONFIRMED");
    expect(placeholders()).toEqual([]);
    expect(stateOf(reservationId)).toBe("SUBMITTED");
    checkInvariants(world);
  });

  it("may still name the hash of its sent transaction", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry);
    const [behind] = await create(entry);
    const rawTransaction = await signed(nonce);
    await expires(reservationId);
    world.chain.submit(rawTransaction);
    await world.allSettled(1);
    const txHash = await hashOf(rawTransaction);
    const made = await world.settle(entry.node.api.markUsed(reservationId, { txHash }));
    await world.allSettled(2);
    for (const txId of [made.txId, behind]) expect(row(txId)?.state).toBe("CONFIRMED");
    expect(world.database.state.holes()).toEqual([]);
  });

  // protects [Reservations] src/domain/ledger/reserve.ts, src/domain/ledger/bind.ts
  it("gets a CONFLICT that names the placeholder", async () => {
    world = new World();
    const entry = await world.startNode();
    const { reservationId, nonce } = await reserve(entry);
    await create(entry);
    await world.allSettled(2);
    const { txId } = await entry.node.api.reservation(reservationId);
    const rawTransaction = await signed(nonce);
    const [submit, used] = [
      await refusal(entry.node.api.submitReserved(reservationId, { rawTransaction })),
      await refusal(entry.node.api.markUsed(reservationId, { txHash: await hashOf(rawTransaction) })),
    ];
    for (const error of [submit, used]) {
      expect(error).toMatchObject({ code: "CONFLICT", extras: { txId } });
      expect(error.message).toContain(`transaction ${txId} took its nonce ${nonce}`);
    }
  });

  /**
   * Two callers submit different payloads while Fencepost fills the expired nonce with a placeholder: during its last
   * checks, its signing and its commit.
   */
  it.each([0, 1, 2, 3, 5, 8])(
    // protects [Reservations] src/domain/ledger/reserve.ts, src/domain/ledger/bind.ts
    "does not get a nonce that another transaction got (%i ms after signing began)",
    async (ms) => {
      world = new World();
      let waits = false;
      const latency = async () => (waits ? world.clock.sleep(3) : undefined);
      const entry = await world.startNode({ latency });
      const { reservationId, nonce } = await reserve(entry);
      await create(entry);
      await expires(reservationId);
      const asked: Promise<{ readonly txId: string } | FencepostError>[] = [];
      const raws = [await signed(nonce, 5n), await signed(nonce, 6n)];
      const sign = entry.signer.sign.bind(entry.signer);
      entry.signer.sign = async (...given) => {
        waits = true;
        world.clock.after(ms, () => {
          for (const rawTransaction of raws.splice(0)) {
            asked.push(entry.node.api.submitReserved(reservationId, { rawTransaction }).catch((error) => error));
          }
        });
        const made = await sign(...given);
        await world.clock.sleep(4);
        return made;
      };
      await world.until(() => asked.length === 2);
      const answers = await world.settle(Promise.all(asked));
      await world.allSettled(2);
      const [holder, ...others] = world.rows().filter((each) => each.nonce === nonce);
      expect(others).toEqual([]);
      for (const answer of answers) {
        const won = "txId" in answer ? answer.txId : answer.extras.txId;
        expect(won).toBe(holder?.txId);
      }
      checkInvariants(world);
    },
  );
});

describe("placeholders for expired reservations on one lane", () => {
  // protects [Reservations] src/domain/ledger/bind.ts, src/application/detours/holes.ts
  it("are limited per hour", async () => {
    world = new World({ settings: { maxReservationRepairs: 1 } });
    // Advance the database's clock to 20 seconds before the full hour.
    await world.clock.advance(3_580_000);
    const entry = await world.startNode();
    const [first, second] = [await reserve(entry), await reserve(entry)];
    const [behind] = await create(entry);
    await world.until(() => row(behind)?.state === "STUCK");
    expect(await entry.node.api.reservation(first.reservationId)).toMatchObject({ txId: placeholders()[0]?.txId });
    expect(row(behind)?.history.at(-1)?.reason).toMatch(
      new RegExp(`nonce ${second.nonce} .*expired unused.*the limit .FENCEPOST_MAX_RESERVATION_REPAIRS.`),
    );
    await world.allSettled(3);
    expect(row(behind)?.state).toBe("CONFIRMED");
    checkInvariants(world);
  });

  // protects [Reservations] src/domain/ledger/bind.ts, src/application/detours/holes.ts
  it("stay counted when another node takes over the lane", async () => {
    world = new World({ settings: { maxReservationRepairs: 1 } });
    const first = await world.startNode();
    await reserve(first, { ttl: "20s" });
    const [behind] = await create(first);
    await world.allSettled(2);
    world.crash(first);
    const second = await world.startNode();
    await world.clock.advance(15_000);
    await reserve(second);
    const [next] = await create(second);
    await world.until(() => row(next)?.state === "STUCK");
    expect(placeholders()).toHaveLength(1);
    expect(row(behind)?.state).toBe("CONFIRMED");
  });

  it("are continued by the next owner", async () => {
    world = new World();
    const first = await world.startNode();
    const { reservationId } = await reserve(first, { ttl: "30s" });
    await create(first);
    await expires(reservationId);
    await world.clock.advance(20_000);
    world.crash(first);
    const second = await world.startNode();
    await world.until(() => world.ownerOf(SIGNER) === "node-2");
    await world.clock.advance(28_000);
    expect(placeholders()).toEqual([]);
    await world.allSettled(2);
    expect(second.events.some((event) => event.type === "alert" && event.code === "HOLE_FILLED")).toBe(true);
    checkInvariants(world);
  });
});

describe("reservations of one API key on one lane", () => {
  // protects [Reservations] src/domain/ledger/reserve.ts
  it("are limited by a setting", async () => {
    world = new World({ settings: { maxReservations: 2 } });
    const entry = await world.startNode();
    const kept = [await reserve(entry), await reserve(entry, { ttl: "10m" })];
    const another = (owner = "ann") => entry.node.api.reserveNonce({ signer: SIGNER }, owner);
    const quota = {
      code: "QUOTA_EXCEEDED",
      extras: { rule: "maxReservations", retryAfterSeconds: expect.any(Number) },
    };
    expect(await refusal(another())).toMatchObject(quota);
    await expires(kept[0]?.reservationId ?? "");
    expect(await refusal(another())).toMatchObject(quota);
    const elsewhere = entry.node.api.reserveNonce({ signer: SIGNERS[1] as string }, "ann");
    expect(await world.settle(elsewhere), "on another lane").toMatchObject({ outcome: "created" });
    expect(await world.settle(another("ben")), "by another key").toMatchObject({ outcome: "created" });
    await world.settle(entry.node.api.releaseNonce((await world.settle(another("cyd"))).reservation.reservationId));
    await create(entry);
    await world.until(() => placeholders().length === 1);
    expect(await world.settle(another())).toMatchObject({ outcome: "created" });
  });
});
