import { expect, it } from "vitest";
import { FAILPOINTS } from "../../src/ports/failpoints.ts";
import { checkSimulation } from "../support/simulation/check.ts";
import { type Simulation, simulate } from "../support/simulation/simulate.ts";

/** FENCEPOST_SIM_SEEDS runs more of them, FENCEPOST_SIM_FIRST begins elsewhere. */
const FIRST = Number(process.env.FENCEPOST_SIM_FIRST ?? 1);
const COUNT = Number(process.env.FENCEPOST_SIM_SEEDS ?? 200);
const ENOUGH = 200;
/** Worlds that once came to grief, and how. */
const REGRESSIONS = [[2_000_948, "an epoch of the feed began between the two reads of a page"]] as const;

async function play(seed: number): Promise<Simulation> {
  const simulation = await simulate(seed);
  checkSimulation(simulation);
  for (const entry of simulation.world.nodes) simulation.world.crash(entry);
  return simulation;
}

function replay(seed: number, error: unknown): string {
  const command = `FENCEPOST_SIM_FIRST=${seed} FENCEPOST_SIM_SEEDS=1 npx vitest run test/application/simulation.test.ts`;
  return `seed ${seed}: ${error instanceof Error ? error.message : String(error)}\nreplay: ${command}`;
}

it(
  `${COUNT} random worlds come to rest with every invariant whole`,
  async () => {
    const failures: string[] = [];
    const counts = new Map<string, number>();
    for (let seed = FIRST; seed < FIRST + COUNT; seed++) {
      try {
        const { crew, callers, payers, world } = await play(seed);
        counts.set("above the ceiling", (counts.get("above the ceiling") ?? 0) + payers.refused);
        for (const [what, times] of crew.counts) counts.set(what, (counts.get(what) ?? 0) + times);
        counts.set("unknown to the caller", (counts.get("unknown to the caller") ?? 0) + callers.unknown);
        for (const { state } of world.database.state.completions) counts.set(state, (counts.get(state) ?? 0) + 1);
        const lowered = world
          .rows()
          .filter(({ attempts: [first, ...later] }) =>
            later.some(({ kind, gas }) => kind === "reprice" && gas < (first?.gas ?? 0n)),
          );
        counts.set("gas lowered", (counts.get("gas lowered") ?? 0) + lowered.length);
        const repriced = world.rows().flatMap(({ attempts }) => attempts.filter(({ kind }) => kind === "reprice"));
        for (const { attempts } of world.rows()) {
          const kinds = new Set(attempts.map(({ kind }) => kind));
          for (const kind of ["cancel", "replace"] as const) {
            if (kinds.has(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
          }
        }
        const alerts = world.nodes.flatMap(({ events }) => events).filter((event) => event.type === "alert");
        const disputes = alerts.filter(({ code }) => code === "RPC_DISAGREES").length;
        counts.set("receipts in dispute", (counts.get("receipts in dispute") ?? 0) + disputes);
        counts.set("reprice", (counts.get("reprice") ?? 0) + repriced.length);
      } catch (error) {
        failures.push(replay(seed, error));
      }
    }
    expect(failures).toEqual([]);
    if (COUNT >= ENOUGH) expectTrouble(counts);
  },
  COUNT * 5_000,
);

it.each(REGRESSIONS)("seed %i, where %s, comes to rest", async (seed) => {
  await play(seed);
});

it("one seed is one story, told again word for word", async () => {
  const tell = async (): Promise<string> => {
    const { world } = await play(11);
    const story = { events: world.nodes.map(({ events }) => events), wire: world.chain.witness };
    return JSON.stringify(story, (_, value: unknown) => (typeof value === "bigint" ? `${value}n` : value));
  };
  const first = await tell();
  expect(first.length).toBeGreaterThan(10_000);
  expect(await tell()).toBe(first);
});

/** A run with too little trouble proves nothing. */
function expectTrouble(counts: ReadonlyMap<string, number>): void {
  const troubles = [
    "takeover",
    "fenced",
    "reorg",
    "REORGED",
    "FAILED_FINAL",
    "STUCK",
    "base fee moved",
    "reprice",
    "cancel",
    "replace",
    "unknown to the caller",
    "history changed",
    "history in doubt",
    "calls unheard",
    "refused",
    "signer away",
    "fees lied about",
    "priced at the ceiling",
    "above the ceiling",
    "lied about gas",
    "gas lowered",
    "lied for good",
    "lied about receipts",
    "receipts in dispute",
    "invented blocks",
  ];
  const crashes = FAILPOINTS.map((name) => `crashed at ${name}`);
  for (const trouble of [...troubles, ...crashes]) expect(counts.get(trouble) ?? 0, trouble).toBeGreaterThan(0);
}
