import { checkSimulation } from "./check.ts";
import { type Scenario, type Simulation, simulate, type Trace } from "./simulate.ts";

/** The results of several seeds. */
export interface Played {
  readonly failures: readonly string[];
  /** How often each kind of fault occurred. */
  readonly counts: Readonly<Record<string, number>>;
}

/** Runs one scenario until all work is done, and checks it. */
export async function play(scenario: Scenario, trace?: Trace): Promise<Simulation> {
  const simulation = await simulate(scenario, trace);
  checkSimulation(simulation);
  for (const entry of simulation.world.nodes) simulation.world.crash(entry);
  return simulation;
}

interface Seeds {
  readonly first: number;
  readonly count: number;
  /** Leaves out the seeds after one that fails. */
  readonly untilFailure?: true;
}

/** Runs seeds. One that fails is reported with the command that replays it. */
export async function playSeeds({ first, count, untilFailure }: Seeds): Promise<Played> {
  const failures: string[] = [];
  const counts: Record<string, number> = {};
  for (let seed = first; seed < first + count; seed++) {
    try {
      for (const [what, times] of troublesOf(await play({ seed }))) counts[what] = (counts[what] ?? 0) + times;
    } catch (error) {
      failures.push(`seed ${seed}: ${messageOf(error)}\nreplay: npm run sim -- --seed ${seed} --trace`);
      if (untilFailure) break;
    }
  }
  return { failures, counts };
}

/** Why a scenario fails; null if it does not. */
export async function failureOf(scenario: Scenario, trace?: Trace): Promise<string | null> {
  try {
    await play(scenario, trace);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

function troublesOf({
  crew,
  callers,
  payers,
  stops,
  webhooks,
  messages,
  spenders,
  sticklers,
  guests,
  world,
}: Simulation): readonly (readonly [what: string, times: number])[] {
  const rows = world.rows();
  const alerts = world.nodes.flatMap(({ events }) => events).filter((event) => event.type === "alert");
  const withKind = (wanted: "cancel" | "replace") =>
    rows.filter(({ attempts }) => attempts.some(({ kind }) => kind === wanted)).length;
  const lowered = rows.filter(({ attempts: [first, ...later] }) =>
    later.some(({ kind, gas }) => kind === "reprice" && gas < (first?.gas ?? 0n)),
  );
  return [
    ...crew.counts,
    ...stops.counts,
    ...(webhooks?.watch.counts ?? []),
    ...(messages?.watch.counts ?? []),
    ...(spenders?.watch.counts ?? []),
    ...(sticklers?.counts ?? []),
    ...(guests?.counts ?? []),
    ...world.database.state.completions.map(({ state }) => [state, 1] as const),
    ["above the ceiling", payers.refused],
    ["unknown to the caller", callers.unknown],
    ["gas lowered", lowered.length],
    ["cancel", withKind("cancel")],
    ["expired", rows.filter(({ subState }) => subState === "EXPIRED").length],
    [
      "expired after it was sent",
      rows.filter(({ subState, nonce }) => subState === "EXPIRED" && nonce !== null).length,
    ],
    ["held back", rows.filter(({ history }) => history.some(({ event }) => event === "hold")).length],
    ["replace", withKind("replace")],
    ["receipts in dispute", alerts.filter(({ code }) => code === "RPC_DISAGREES").length],
    ["reprice", rows.flatMap(({ attempts }) => attempts.filter(({ kind }) => kind === "reprice")).length],
  ];
}
