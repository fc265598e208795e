import { parseArgs } from "node:util";

export interface BenchOptions {
  readonly json: boolean;
  readonly pace: Pace;
  /** Only measures whose name begins with one of these; all where empty. */
  readonly only: readonly string[];
  /** Directory for a CPU profile of every node that is started; null: none are taken. */
  readonly profileTo: string | null;
  /** Commit, branch or tag whose build is measured beside this one, in turns; null: only this one. */
  readonly against: string | null;
  /** Turns of a comparison. */
  readonly turns: number;
}

/** How long everything takes. Ratios need rounds, rates need seconds. */
export interface Pace {
  /** What is compared is measured in turns, this many times; medians are reported. */
  readonly rounds: number;
  /** Of one turn, after the warm-up. */
  readonly turnMs: number;
  readonly warmUpMs: number;
  /** Of one sustained rate. */
  readonly sustainMs: number;
  /** Creates of a sustained rate; absent: as many as get confirmed. A node that is given more does each for less. */
  readonly perSecond?: number;
}

const FULL: Pace = { rounds: 3, turnMs: 4_000, warmUpMs: 3_000, sustainMs: 25_000 };
const COMPARED: Pace = { rounds: 1, turnMs: 3_000, warmUpMs: 2_000, sustainMs: 8_000, perSecond: 300 };
const QUICK: Pace = { rounds: 1, turnMs: 2_500, warmUpMs: 1_500, sustainMs: 5_000 };

export function parseOptions(argv: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      quick: { type: "boolean" },
      json: { type: "boolean" },
      profile: { type: "string" },
      against: { type: "string" },
      turns: { type: "string", default: "10" },
    },
  });
  return {
    json: values.json === true,
    pace: values.against !== undefined ? COMPARED : values.quick === true ? QUICK : FULL,
    only: positionals,
    profileTo: values.profile ?? null,
    against: values.against ?? null,
    turns: Number(values.turns),
  };
}
