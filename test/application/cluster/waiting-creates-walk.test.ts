import { afterEach, describe, expect, it } from "vitest";
import type { Created, CreateRequest } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNERS, TO, transfer, World, type WorldNode } from "../../support/world.ts";

/**
 * Replicas receive sends to pools, with and without named nonces. Meanwhile replicas are paused, killed and started,
 * and responses get lost.
 */

let world: World;
afterEach(() => world.close());

type Result = Created | FencepostError;
const POOLS = new Map([["payouts", SIGNERS]]);
const SENDS = 60;

/** A seeded random generator of integers from 0 to below `most`. */
function chance(seed: number): (most: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % most;
  };
}

class Walk {
  private readonly draw: (most: number) => number;
  readonly nodes: WorldNode[] = [];
  /** All results received so far for each request id. */
  readonly resultsById = new Map<string, Result[]>();
  private readonly asked: Promise<void>[] = [];

  constructor(seed: number) {
    this.draw = chance(seed);
  }

  async start(): Promise<void> {
    this.nodes.push(await world.startNode({ embedded: true }));
  }

  private oneOf<T>(all: readonly T[]): T {
    return all[this.draw(all.length)] as T;
  }

  private request(requestId: string): CreateRequest {
    const signer = this.oneOf(SIGNERS);
    const cursor = [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer)?.cursor ?? 0;
    const kind = this.draw(10);
    // Each payload is unique: a payload equal to that of a nonce already used would count as a repeated request.
    const payload = { to: TO, value: requestId.replace(/\D/g, ""), gas: 21_000, gasPrice: "20000000000" };
    if (kind < 4) return transfer({ requestId, payload, signer: { pool: "payouts" } });
    if (kind < 8) return { ...transfer({ requestId, payload, signer }), nonce: cursor + this.draw(2) };
    return transfer({ requestId, payload, signer });
  }

  send(index: number): void {
    const request = this.request(`walk-${index}`);
    const times = 1 + this.draw(2);
    for (let each = 0; each < times; each++) this.ask(request);
  }

  private ask(request: CreateRequest): void {
    const { requestId = "" } = request as { readonly requestId?: string };
    const note = (result: Result) =>
      void this.resultsById.set(requestId, [...(this.resultsById.get(requestId) ?? []), result]);
    const { node } = this.oneOf(this.nodes);
    this.asked.push(node.api.create(request).then(note, note));
  }

  async disturb(): Promise<void> {
    const node = this.oneOf(this.nodes);
    const kind = this.draw(8);
    if (kind === 0 && this.nodes.length > 2) {
      this.nodes.splice(this.nodes.indexOf(node), 1);
      world.crash(node);
      await this.start();
    } else if (kind < 3) {
      node.store.pause();
      world.clock.after(this.oneOf([50, 1_000, 3_990, 6_000]), () => node.store.resume());
    } else if (kind === 3) node.store.failNextCommit(this.oneOf(["unknown-committed", "unknown-lost"]));
    else if (kind === 4) node.store.failNextLeave("unknown-committed");
  }

  async settled(): Promise<void> {
    await world.settle(Promise.all(this.asked), 120_000);
  }
}

async function walk(seed: number): Promise<Walk> {
  world = new World({ seed, sessionLocks: seed % 2 === 0, hints: seed % 3 === 0, node: { pools: POOLS } });
  const own = new Walk(seed);
  for (let count = 0; count < 3; count++) await own.start();
  await world.until(() => own.nodes.every(({ node }) => node.gauges().lanesHeld > 0), 30_000);
  for (let index = 0; index < SENDS; index++) {
    own.send(index);
    if (index % 3 === 0) await own.disturb();
    await world.clock.advance(index % 4 === 0 ? 150 : 20);
  }
  await own.settled();
  return own;
}

const isMade = (result: Result): result is Created => !(result instanceof FencepostError);
const isRefused = (result: Result) => result instanceof FencepostError && result.extras.outcome !== "unknown";
const laneOf = ({ lane }: { readonly lane: { readonly signer: Address } }) => lane.signer;

describe("a random sequence of pool creates, named nonces, pauses and crashes", () => {
  it.each([1, 2, 3, 4, 5, 6])(
    // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/stages/1-create/asked-create.ts
    "stores each accepted request once (seed %i)",
    async (seed) => {
      const { resultsById } = await walk(seed);
      await world.until(
        () => world.rows().every(({ state }) => state === "CONFIRMED" || state === "FAILED_FINAL"),
        600_000,
      );
      for (const [requestId, results] of resultsById) {
        const rows = world.rows().filter((row) => row.requestId === requestId);
        expect(rows.length, `${requestId} has one transaction at most`).toBeLessThanOrEqual(1);
        if (results.every(isRefused)) expect(rows, `${requestId} was refused`).toEqual([]);
        for (const result of results.filter(isMade)) {
          expect(rows, `${requestId} was told as made`).toHaveLength(1);
          if (result.nonce !== null)
            expect(rows[0]).toMatchObject({ nonce: result.nonce, lane: { signer: laneOf(result) } });
        }
      }
      expect([...resultsById.values()].flat().filter(isMade).length).toBeGreaterThan(SENDS / 3);
      checkInvariants(world);
    },
  );
});
