import { describe, expect, it } from "vitest";
import { createFleet, type FleetPlace } from "../../src/fleet/index.ts";
import { type Answering, type Asked, created, lost, problem, scriptedFetch } from "../support/scripted-fetch.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const ELSEWHERE = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const TX = "019a4b7e-0000-7000-8000-000000000001";
const intent = { signer: SIGNER, requestId: "order-42", payload: { to: ELSEWHERE, value: 1n } } as const;

type Answers = Readonly<Record<string, Answering>>;

/** A fleet of cells that answer as scripted, and what each was asked. */
function fleetOf(answers: Answers, timeoutMs = 2_000) {
  const wires = Object.entries(answers).map(([cell, answering]) => [cell, scriptedFetch(answering)] as const);
  const cells = wires.map(([cell, { fetch }]) => [cell, { url: `http://${cell}.example`, fetch }] as const);
  const asked = new Map(wires.map(([cell, wire]) => [cell, wire.asked]));
  const paths = (cell: string) => (asked.get(cell) ?? []).map(({ method, path }) => `${method} ${path.slice(7)}`);
  return { fleet: createFleet({ cells: Object.fromEntries(cells), timeoutMs }), asked, paths };
}

const lanes = (...places: readonly string[]) =>
  Response.json({ items: places.map((place) => ({ chainId: 1, place })) });
const unknown = () => problem("UNKNOWN_SIGNER", 422);
const isLook = ({ method }: Asked) => method === "GET";

/** A cell at which the signer is at these places, one after the other: the last one stays. */
function cellWith(places: readonly string[], accept: Answering = ({ body }) => created(body)): Answering {
  const left = [...places];
  return (asked, turn) => {
    if (!isLook(asked)) return accept(asked, turn);
    const place = left.length > 1 ? left.shift() : left[0];
    return place === undefined ? unknown() : lanes(place);
  };
}

describe("a fleet's client", () => {
  // protects [Cells] src/fleet/directory.ts
  it("sends to the cell that has the signer, and asks for it once", async () => {
    const { fleet, paths } = fleetOf({ north: cellWith([]), south: cellWith(["HERE"]) });
    for (const requestId of ["a", "b"]) await fleet.send({ ...intent, requestId });
    expect(paths("north")).toEqual([`GET /signers/${SIGNER}`]);
    expect(paths("south")).toEqual([`GET /signers/${SIGNER}`, "POST /tx", "POST /tx"]);
    expect(await fleet.cellOf(SIGNER)).toBe("south");
  });

  // protects [Cells] src/fleet/directory.ts
  it("refuses a signer that two cells have, and sends nothing", async () => {
    const { fleet, paths } = fleetOf({ north: cellWith(["HERE"]), south: cellWith(["HERE"]) });
    await expect(fleet.send(intent)).rejects.toMatchObject({ code: "INVALID_REQUEST", requestId: "order-42" });
    expect([...paths("north"), ...paths("south")].filter((path) => path.startsWith("POST"))).toEqual([]);
  });

  // protects [Cells] src/fleet/index.ts
  it("finds a signer that moved, and sends under the same request id", async () => {
    const moved = () => problem("SIGNER_MOVED", 421);
    const { fleet, asked } = fleetOf({
      north: cellWith(["HERE", "LEFT"], moved),
      south: cellWith(["EXPECTED", "EXPECTED", "HERE"]),
    });
    const sent = await fleet.send({ signer: SIGNER, payload: intent.payload });
    const ids = [...asked.values()].flat().flatMap(({ body }) => body?.requestId ?? []);
    expect(ids).toEqual([sent.requestId, sent.requestId]);
    expect(asked.get("south")?.filter((each) => !isLook(each))).toHaveLength(1);
  });

  // protects [Cells] src/fleet/index.ts
  it("has a request id of the former cell answered there", async () => {
    const spent = () => problem("REQUEST_ID_REUSED", 409);
    const first = "019a4b7e-0000-7000-8000-0000000000aa";
    const { fleet, paths } = fleetOf({
      north: cellWith(["LEFT"], ({ body }) => created(body, { txId: first, state: "CONFIRMED" })),
      south: cellWith(["HERE"], spent),
      west: cellWith([], spent),
    });
    expect(await fleet.send(intent)).toMatchObject({ txId: first, state: "CONFIRMED" });
    expect(paths("west")).toEqual([`GET /signers/${SIGNER}`]);
  });

  it("reports a request id that belongs to another payload as the cell does", async () => {
    const reused = () => problem("REQUEST_ID_REUSED", 409, { txId: TX });
    const { fleet, paths } = fleetOf({ north: cellWith(["LEFT"]), south: cellWith(["HERE"], reused) });
    await expect(fleet.send(intent)).rejects.toMatchObject({ code: "REQUEST_ID_REUSED", txId: TX });
    expect(paths("north")).toEqual([`GET /signers/${SIGNER}`]);
  });

  it("refuses a signer that no cell has at once, and one that is silent with that cell's error", async () => {
    const { fleet } = fleetOf({ north: cellWith([]), south: cellWith([]) });
    await expect(fleet.send(intent)).rejects.toMatchObject({ code: "UNKNOWN_SIGNER" });
    const half = fleetOf({ north: cellWith([]), south: lost }, 300);
    await expect(half.fleet.send(intent)).rejects.toMatchObject({ code: expect.stringMatching(/UNREACHABLE|TIMEOUT/) });
  });

  it("uses the cell that has the signer while another one is silent", async () => {
    const silent: Answering = () => problem("UNAVAILABLE", 503, {}, { "retry-after": "3600" });
    const { fleet } = fleetOf({ north: cellWith(["HERE"]), south: silent });
    expect(await fleet.send(intent)).toMatchObject({ txId: TX });
  });

  it("refuses a pool, which belongs to one cell", async () => {
    const { fleet } = fleetOf({ north: cellWith(["HERE"]) });
    await expect(fleet.send({ ...intent, signer: { pool: "payouts" } })).rejects.toThrow("a pool belongs to one cell");
  });

  it("finds a transaction in any cell, and knows none only if no cell does", async () => {
    const here: Answering = () => Response.json({ txId: TX, state: "CONFIRMED" });
    const missing: Answering = () => problem("NOT_FOUND", 404);
    const { fleet } = fleetOf({ north: missing, south: here });
    expect(await fleet.get(TX)).toMatchObject({ state: "CONFIRMED" });
    expect(await fleet.waitFor(TX)).toMatchObject({ state: "CONFIRMED" });
    await expect(fleetOf({ north: missing, south: missing }).fleet.get(TX)).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
    const silent: Answering = () => problem("UNAVAILABLE", 503, {}, { "retry-after": "3600" });
    const half = fleetOf({ north: missing, south: silent }).fleet;
    await expect(half.get(TX)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("the outcomes of a fleet", () => {
  const encoder = new TextEncoder();

  /** A cell's stream of these outcomes, which then stays open. */
  const feed =
    (cell: string, epoch: number, ...seqs: readonly number[]): Answering =>
    ({ path }) => {
      const after = Number(new URL(path, "http://cell.example").searchParams.get("after") ?? 0);
      const items = seqs.filter((seq) => seq > after);
      const text = items.map((seq) => {
        const data = JSON.stringify({ seq, epoch, requestId: `${cell}-${seq}` });
        return `id: ${epoch}:${seq}\nevent: completion\ndata: ${data}\n\n`;
      });
      const begin = `id: ${epoch}:${after}\nevent: begin\ndata: {"epoch":${epoch},"after":${after}}\n\n`;
      const parts = [begin, ...text];
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          const next = parts.shift();
          return next === undefined ? new Promise(() => undefined) : controller.enqueue(encoder.encode(next));
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    };

  async function take(outcomes: AsyncIterable<{ readonly requestId: string | null }>, count: number) {
    const taken: (string | null)[] = [];
    for await (const { requestId } of outcomes) {
      taken.push(requestId);
      if (taken.length === count) break;
    }
    return taken;
  }

  // protects [Cells] src/fleet/follow-cells.ts
  it("come from every cell, each in its order, and continue at a stored position of all feeds", async () => {
    const answers = { north: feed("north", 5, 1, 2, 3), south: feed("south", 8, 1, 2) };
    let place: FleetPlace | null = null;
    const store = {
      load: () => place,
      save: (next: FleetPlace) => {
        place = next;
      },
    };
    const first = await take(fleetOf(answers).fleet.outcomes({ store }), 3);
    const rest = await take(fleetOf(answers).fleet.outcomes({ store }), 3);
    const ofCell = (cell: string) => [...new Set([...first, ...rest])].filter((each) => each?.startsWith(cell));
    expect(ofCell("north")).toEqual(["north-1", "north-2", "north-3"]);
    expect(ofCell("south")).toEqual(["south-1", "south-2"]);
    // The item that a reader ended at counts as not processed: it comes once more.
    expect(rest[0] === first.at(-1) || rest.includes(first.at(-1) as string)).toBe(true);
    expect(place).toMatchObject({ north: { epoch: 5 }, south: { epoch: 8 } });
  });

  it("are not delayed by a cell that is down", async () => {
    const { fleet } = fleetOf({ north: lost, south: feed("south", 8, 1, 2) });
    expect(await take(fleet.outcomes(), 2)).toEqual(["south-1", "south-2"]);
  });

  it("begin behind a given position", async () => {
    const { fleet } = fleetOf({ north: feed("north", 5, 1, 2), south: feed("south", 8, 1, 2) });
    const after = { north: { seq: 2, epoch: 5 }, south: { seq: 1, epoch: 8 } };
    expect(await take(fleet.outcomes({ after }), 1)).toEqual(["south-2"]);
  });
});
