import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Dice } from "../../src/main/dev/chaos/dice.ts";
import type { Mutant } from "./mutant.ts";

export interface MutantOptions {
  /** Runs the simulation instead of the tests. */
  readonly simulation: boolean;
  /** Seeds per mutant of the simulation, and the first of them. */
  readonly seeds: number;
  readonly first: number;
  /** Most runs of the simulation with one mutant: fewer than the seeds give a lower bound in less time. */
  readonly runs: number;
  /** File to which each result is added as a line of JSON; null: none. */
  readonly log: string | null;
  readonly workers: number;
  /** Regular expression for name or file; null: all rows. */
  readonly only: string | null;
  /** Number of rows in a sample; null: all rows. */
  readonly sample: number | null;
  /** Seed of a random order of the rows, of which the sample is taken; null: the order of the table. */
  readonly shuffle: number | null;
  /** Selects the sample: a workflow that counts up covers the whole table in turn. */
  readonly turn: number;
}

export function parseOptions(argv: readonly string[]): MutantOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      simulation: { type: "boolean", default: false },
      seeds: { type: "string", default: "300" },
      first: { type: "string", default: "1" },
      runs: { type: "string" },
      log: { type: "string" },
      workers: { type: "string", default: String(Math.min(4, availableParallelism())) },
      only: { type: "string" },
      sample: { type: "string" },
      shuffle: { type: "string" },
      turn: { type: "string", default: "0" },
    },
  });
  return {
    simulation: values.simulation,
    seeds: Number(values.seeds),
    first: Number(values.first),
    runs: Number(values.runs ?? values.seeds),
    log: values.log ?? null,
    workers: Number(values.workers),
    only: values.only ?? null,
    sample: values.sample === undefined ? null : Number(values.sample),
    shuffle: values.shuffle === undefined ? null : Number(values.shuffle),
    turn: Number(values.turn),
  };
}

/** Rows that the options select. A sample is a contiguous part of the table, so that consecutive turns cover it all. */
export function selected(table: readonly Mutant[], { only, sample, shuffle, turn }: MutantOptions): readonly Mutant[] {
  const pattern = only === null ? /(?:)/ : new RegExp(only, "i");
  const matching = table.filter(({ name, file }) => pattern.test(name) || pattern.test(file));
  const rows = shuffle === null ? matching : shuffled(matching, new Dice(shuffle));
  if (sample === null || sample >= rows.length) return rows;
  const first = (turn * sample) % rows.length;
  return [...rows, ...rows].slice(first, first + sample);
}

function shuffled(rows: readonly Mutant[], dice: Dice): readonly Mutant[] {
  const left = [...rows];
  return rows.flatMap(() => left.splice(dice.int(0, left.length - 1), 1));
}
