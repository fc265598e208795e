/**
 * Two cells: a signer moves between them under load, while the nodes of either are killed at every step. The chain, both
 * databases and both feeds are compared in the end.
 */
import { describe, expect } from "vitest";
import { createFleet, type FleetPlace, type FleetStore, moveToCell } from "../../../src/fleet/index.ts";
import { minedTransactions } from "../../support/audit.ts";
import { createTestDatabase } from "../../support/database.ts";
import { connect, type Database, it, KEYS, nodesOn, SHORT_LEASE, SIGNER } from "../../support/integration.ts";
import type { NodeProcess } from "../../support/node-process.ts";
import { pricedTransfer, range } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

const CALLERS = 3;
const CELL = /^http:\/\/(\w+)\.example/;

/** How a step of the move goes wrong: its request or its answer is lost, because the node dies. */
type Blow = "as it is asked" | "before its answer arrives";

/** One deployment: a database of its own, and a node that can be killed and started again. */
class Cell {
  node: NodeProcess | null = null;
  readonly name: string;
  readonly database: Database & { end(): Promise<void> };
  private readonly drop: () => Promise<void>;
  private readonly nodes: ReturnType<typeof nodesOn>;
  private readonly rpcUrl: string;

  private constructor(name: string, stored: { readonly url: string; drop(): Promise<void> }, rpcUrl: string) {
    this.name = name;
    this.rpcUrl = rpcUrl;
    this.database = connect(stored.url);
    this.drop = () => stored.drop();
    this.nodes = nodesOn(stored.url);
  }

  static async create(name: string, rpcUrl: string): Promise<Cell> {
    return new Cell(name, await createTestDatabase(), rpcUrl);
  }

  async start(keys: readonly string[] = KEYS): Promise<void> {
    const variables = { ...SHORT_LEASE, FENCEPOST_PRIVATE_KEYS: keys.join(",") };
    this.node = await this.nodes.start(this.rpcUrl, variables);
  }

  kill(): void {
    this.node?.signal("SIGKILL");
    this.node = null;
  }

  async end(): Promise<void> {
    await this.nodes.killAll();
    await this.database.end();
    await this.drop();
  }
}

/** A `fetch` that finds the node of a cell, wherever it was started last. */
function wired(cells: readonly Cell[]): typeof globalThis.fetch {
  return async (input, init) => {
    const url = String(input);
    const name = CELL.exec(url)?.[1];
    const cell = cells.find((each) => each.name === name);
    if (cell?.node == null) throw new TypeError("fetch failed");
    return fetch(url.replace(CELL, cell.node.url), init);
  };
}

/** Kills the node of one cell at each of its steps in turn, once each, and starts it again. */
class Killer {
  readonly struck: string[] = [];
  private readonly cells: readonly Cell[];
  private readonly target: Cell;
  private readonly blow: Blow;

  constructor(cells: readonly Cell[], target: Cell, blow: Blow) {
    this.cells = cells;
    this.target = target;
    this.blow = blow;
  }

  get fetch(): typeof globalThis.fetch {
    const ask = wired(this.cells);
    return async (input, init) => {
      const step = this.stepOf(String(input), init);
      if (step === null) return ask(input, init);
      this.struck.push(step);
      const asked = ask(input, init);
      if (this.blow === "before its answer arrives") await asked;
      this.target.kill();
      await asked.catch(() => undefined);
      throw new TypeError("fetch failed");
    };
  }

  /** The step that a request makes at the target, if no earlier one of its kind was struck. */
  private stepOf(url: string, init: RequestInit | undefined) {
    if (!url.endsWith("/move") || CELL.exec(url)?.[1] !== this.target.name) return null;
    const { step, after } = JSON.parse(String(init?.body)) as { readonly step: string; readonly after?: string };
    const name = after === undefined ? step : `${step} after ${after[0]}`;
    return this.struck.includes(name) ? null : name;
  }
}

function storeInMemory(): FleetStore & { place: FleetPlace | null } {
  const store: FleetStore & { place: FleetPlace | null } = {
    place: null,
    load: () => store.place,
    save: (place) => {
      store.place = place;
    },
  };
  return store;
}

describe("a signer that moves between two cells under load", () => {
  // protects [Cells] src/domain/cluster/lane-move.ts, src/adapters/postgres/stores/lane-moves.ts, src/fleet/index.ts
  it("gets each nonce once and pays each request once, whichever side is killed at whichever step", {
    timeout: 900_000,
  }, async ({ simulated, onTestFinished }) => {
    const cells = [await Cell.create("north", simulated.url), await Cell.create("south", simulated.url)] as const;
    const [north, south] = cells;
    onTestFinished(async () => void (await Promise.all(cells.map((cell) => cell.end()))));
    await Promise.all([north.start(), south.start([KEYS[1]])]);
    const fleet = createFleet({
      cells: Object.fromEntries(
        cells.map(({ name }) => [name, { url: `http://${name}.example`, fetch: wired(cells), timeoutMs: 5_000 }]),
      ),
    });

    const ending = new AbortController();
    const orders: string[] = [];
    const call = async (caller: number) => {
      for (let n = 0; !ending.signal.aborted; n++) {
        const requestId = `${caller}-${n}`;
        orders.push(requestId);
        const intent = { ...pricedTransfer(n), signer: SIGNER, requestId };
        await waitUntil(() => fleet.send(intent, { timeoutMs: 10_000 }).catch(() => null), `${requestId} is accepted`, {
          giveUpMs: 90_000,
        });
      }
    };
    const callers = Promise.all(range(CALLERS).map(call));
    callers.catch(() => undefined);

    const store = storeInMemory();
    const seen = new Map<string, number>();
    const read = async (signal: AbortSignal) => {
      for await (const { requestId, settled } of fleet.outcomes({ store }, { signal })) {
        if (settled && requestId !== null) seen.set(requestId, (seen.get(requestId) ?? 0) + 1);
      }
    };

    // The key comes to the second cell only after that cell expects the signer: until then nothing keeps it from serving.
    await fleet.cells.south?.moveSigner(SIGNER, { step: "expect", reason: "drill" });
    south.kill();
    await south.start();

    const blows: readonly Blow[] = ["as it is asked", "before its answer arrives"];
    for (const [turn, target] of [north, south, north, south].entries()) {
      const [from, to] = turn % 2 === 0 ? [north, south] : [south, north];
      const reader = new AbortController();
      const reading = read(reader.signal).catch(() => undefined);
      const killer = new Killer(cells, target, blows[Math.floor(turn / 2)] as Blow);
      const { cells: movers } = createFleet({
        cells: Object.fromEntries(
          cells.map(({ name }) => [name, { url: `http://${name}.example`, fetch: killer.fetch, repeat: false }]),
        ),
      });
      const sides = { from: movers[from.name], to: movers[to.name] } as Pick<
        Parameters<typeof moveToCell>[0],
        "from" | "to"
      >;
      const before = orders.length;
      await waitUntil(() => orders.length > before + 3 * CALLERS, "orders are accepted before the move");
      const move = async () => {
        if (target.node === null) await target.start();
        return moveToCell({ ...sides, signer: SIGNER, reason: "drill", pollIntervalMs: 50 }).catch(() => null);
      };
      const there = await waitUntil(move, `${SIGNER} has moved to ${to.name}`, { giveUpMs: 90_000 });
      expect(there.place).toBe("HERE");
      expect(killer.struck).toContain(target === from ? "leave" : "arrive");
      const after = orders.length;
      await waitUntil(() => orders.length > after + 3 * CALLERS, "orders are accepted after the move");
      expect(await fleet.cellOf(SIGNER)).toBe(to.name);
      reader.abort();
      await reading;
    }

    ending.abort();
    await callers;
    const rows = async () =>
      (
        await Promise.all(
          cells.map(({ database }) =>
            database.query<{ request_id: string; nonce: string | null; state: string }>(
              "SELECT request_id, nonce, state FROM fencepost.transaction WHERE signer = $1",
              [SIGNER.toLowerCase()],
            ),
          ),
        )
      ).flat();
    await waitUntil(async () => (await rows()).every(({ state }) => state === "CONFIRMED"), "all is final", {
      giveUpMs: 60_000,
    });
    const stored = await rows();
    expect(stored.map(({ request_id }) => request_id).sort()).toEqual([...orders].sort());
    const numbers = (nonces: readonly number[]) => [...nonces].sort((a, b) => a - b);
    expect(numbers(stored.map(({ nonce }) => Number(nonce)))).toEqual(range(orders.length));
    const mined = (await minedTransactions(simulated.url)).filter(({ from }) => from === SIGNER.toLowerCase());
    expect(numbers(mined.map(({ nonce }) => Number(nonce)))).toEqual(range(orders.length));

    const reader = new AbortController();
    const reading = read(reader.signal).catch(() => undefined);
    await waitUntil(() => seen.size === orders.length, "the reader has every outcome");
    reader.abort();
    await reading;
    expect([...seen.keys()].sort()).toEqual([...orders].sort());
  });
});
