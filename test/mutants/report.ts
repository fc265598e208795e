/** Result of one row. */
export interface Result {
  readonly name: string;
  readonly file: string;
  /** `broken`: the row could not be judged, as when its tests fail without the mutant. */
  readonly verdict: "found" | "survived" | "broken";
  /** Test or seed that found the mutant, or why the row could not be judged. */
  readonly detail: string;
  readonly ms: number;
}

const MARK = { found: "ok      ", survived: "SURVIVED", broken: "BROKEN  " };

export function line({ verdict, file, name, detail, ms }: Result): string {
  const seconds = (ms / 1_000).toFixed(1).padStart(5);
  const because = verdict === "found" ? "" : `\n           ${detail.split("\n", 1)[0]}`;
  return `${MARK[verdict]} ${seconds} s  ${file}: ${name}${because}\n`;
}

/** Folders whose protections the simulation must find by itself. */
const CORE = /^src\/(?:domain\/(?:ledger|pace|policy)|application\/(?:lane|stages|detours|writer))\//;
/** Smallest shares of rows that the simulation finds: of the core, and of all rows. */
const BARS = { core: 0.9, all: 0.6 };

/** Last lines of a run, and whether it failed. */
export function summary(results: readonly Result[], { simulation }: { readonly simulation: boolean }) {
  const count = (wanted: Result["verdict"]) => results.filter(({ verdict }) => verdict === wanted).length;
  const totals = `${results.length} mutants: ${count("found")} found, ${count("survived")} survived, ${count("broken")} broken`;
  if (!simulation) return { text: `${totals}\n`, failed: count("found") < results.length };
  const core = shareFound(results.filter(({ file }) => CORE.test(file)));
  const all = shareFound(results);
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const shares = `by the simulation alone: core ${percent(core)} (bar ${percent(BARS.core)}), all ${percent(all)} (bar ${percent(BARS.all)})`;
  return { text: `${totals}\n${shares}\n`, failed: core < BARS.core || all < BARS.all || count("broken") > 0 };
}

function shareFound(results: readonly Result[]): number {
  if (results.length === 0) return 1;
  return results.filter(({ verdict }) => verdict === "found").length / results.length;
}
