import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleSimulation } from "../support/simulation/bundle.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import type { Mutant } from "./mutant.ts";
import type { MutantOptions } from "./options.ts";
import { Player } from "./player.ts";
import type { Result } from "./report.ts";
import type { Progress } from "./seed-player.ts";
import { switchedSource } from "./switched-source.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const MAIN = new URL("./seed-player.ts", import.meta.url);

type Report = (result: Result) => void;

/** What is known of one row. */
interface Standing {
  readonly mutant: Mutant;
  /** Number of seeds that were played with it. */
  played: number;
  ms: number;
}

/**
 * Plays seeds with mutants until each has made one fail. All mutants are behind switches of one bundle. Each seed is
 * played once without a mutant, and then only with those that would make a difference in it. Returns the failures of
 * seeds that fail without a mutant: they find nothing.
 */
export async function simulateAll(
  rows: readonly Mutant[],
  options: MutantOptions,
  report: Report,
): Promise<readonly string[]> {
  const directory = await makeTemporaryDirectory();
  try {
    const mutants = new Map(rows.map((mutant, id) => [id, { mutant, played: 0, ms: 0 }]));
    const { bundle, unmade } = await bundleOf(directory.path, mutants);
    const campaign = new Campaign(bundle, mutants, options, report);
    for (const [id, why] of unmade) campaign.settle(id, why.verdict, why.detail);
    await campaign.run();
    return campaign.failing;
  } finally {
    await directory.remove();
  }
}

/** The bundle with a switch for each mutant, and the mutants that are not in it. */
async function bundleOf(directory: string, mutants: ReadonlyMap<number, Standing>) {
  const unmade = new Map<number, Pick<Result, "verdict" | "detail">>();
  for (const [id] of mutants) unmade.set(id, { verdict: "survived", detail: "the simulation does not load this file" });
  const bundle = await bundleSimulation(directory, MAIN, {
    name: "mutants",
    transform(code: string, path: string) {
      const file = relative(ROOT, path);
      const ours = new Map([...mutants].flatMap(([id, { mutant }]) => (mutant.file === file ? [[id, mutant]] : [])));
      if (ours.size === 0) return null;
      const { code: switched, left } = switchedSource(code, file, ours);
      for (const id of ours.keys()) unmade.delete(id);
      for (const id of left) unmade.set(id, { verdict: "broken", detail: "no switch can make this change" });
      return switched;
    },
  });
  return { bundle, unmade };
}

class Campaign {
  private readonly bundle: string;
  private readonly mutants: Map<number, Standing>;
  private readonly options: MutantOptions;
  private readonly report: Report;
  readonly failing: string[] = [];

  constructor(bundle: string, mutants: Map<number, Standing>, options: MutantOptions, report: Report) {
    this.bundle = bundle;
    this.mutants = mutants;
    this.options = options;
    this.report = report;
  }

  async run(): Promise<void> {
    const first = new Player(this.bundle, null);
    await first.start();
    const atLoad = first.atLoad.filter((id) => this.mutants.has(id));
    const seeds = this.seeds();
    const early = [...atLoad];
    const work = async (player: Player) => {
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
        await this.playSeed(player, seed, new Set(atLoad));
      }
      player.stop();
      for (let id = early.shift(); id !== undefined; id = early.shift()) await this.playAlone(id);
    };
    const more = Array.from({ length: this.options.workers - 1 }, () => new Player(this.bundle, null));
    await Promise.all([first, ...more].map(work));
    for (const [id, { played }] of this.mutants)
      this.settle(id, "survived", played === 0 ? "it changes nothing in any seed" : `${played} seeds that it changes`);
  }

  settle(id: number, verdict: Result["verdict"], detail: string): void {
    const known = this.mutants.get(id);
    if (known === undefined) return;
    this.mutants.delete(id);
    const { mutant, ms } = known;
    this.report({ name: mutant.name, file: mutant.file, verdict, detail, ms: Math.round(ms) });
  }

  private seeds(): number[] {
    const { first, seeds } = this.options;
    return Array.from({ length: seeds }, (_, index) => first + index);
  }

  /** Plays one seed with every mutant that is left and would make a difference. */
  private async playSeed(player: Player, seed: number, without: ReadonlySet<number>): Promise<void> {
    let isBlind = false;
    let left = [...this.mutants.keys()].filter((id) => !without.has(id));
    while (left.length > 0) {
      let differing: readonly number[] = left;
      const note = this.noteOf(seed, (ids) => {
        differing = ids;
      });
      const played = await this.ordered(player, { seed, mutants: left, isBlind }, note);
      if (played === null) return;
      const next = left.indexOf(played) + 1;
      left = left.slice(next).filter((id) => differing.includes(id) && this.mutants.has(id));
      isBlind = true;
    }
  }

  /** Plays all seeds with a mutant that must be on from the beginning. */
  private async playAlone(id: number): Promise<void> {
    const player = new Player(this.bundle, id);
    for (const seed of this.seeds()) {
      if (!this.mutants.has(id)) break;
      await this.ordered(player, { seed, mutants: [id], isBlind: true }, this.noteOf(seed));
    }
    player.stop();
  }

  /** Returns the mutant during which the process ended; null if all were played. */
  private async ordered(player: Player, order: Parameters<Player["play"]>[0], note: (progress: Progress) => void) {
    const { seed } = order;
    let current: number | null = null;
    let ended: number | null = null;
    await player.play(order, (progress) => {
      if (progress?.kind === "plays") current = progress.mutant;
      if (progress?.kind === "played") current = null;
      if (progress !== null) return note(progress);
      ended = current ?? (order.isBlind ? (order.mutants[0] ?? null) : null);
      if (ended !== null) this.settle(ended, "found", `seed ${seed}: the simulation does not end, or ends its process`);
    });
    return ended;
  }

  private noteOf(seed: number, looked: (differing: readonly number[]) => void = () => undefined) {
    let beganAtMs = performance.now();
    return (progress: Progress) => {
      if (progress.kind === "plays") beganAtMs = performance.now();
      if (progress.kind === "looked") {
        if (progress.failure !== null) this.failing.push(`seed ${seed} fails without a mutant: ${progress.failure}`);
        looked(progress.differing);
      }
      if (progress.kind !== "played") return;
      const known = this.mutants.get(progress.mutant);
      if (known === undefined) return;
      known.played++;
      known.ms += performance.now() - beganAtMs;
      if (progress.failure !== null) this.settle(progress.mutant, "found", `seed ${seed}: ${progress.failure}`);
      else if (known.played >= this.options.runs)
        this.settle(progress.mutant, "survived", `${known.played} seeds that it changes`);
    };
  }
}
