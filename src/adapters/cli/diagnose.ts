/**
 * `init` writes a configuration, `doctor` checks it, `bench` measures throughput, and `chaos` tests fault tolerance.
 */
import type { Command } from "commander";
import type { Address } from "../../client/index.ts";
import { answerWith, type CommandOptions } from "./answer.ts";
import { CommandFailed } from "./failure.ts";
import { addressed, positive, type RemoteOptions } from "./remote.ts";
import { indented, inert } from "./shorten.ts";
import { figures } from "./table.ts";
import type { CliIo, View } from "./terminal.ts";

/** Result of one check of `doctor`. */
export interface Finding {
  readonly sign: "ok" | "warning" | "mistake";
  /** Stable code of the check's result, for programs. */
  readonly code: string;
  readonly text: string;
  /** How to fix the problem that the check found; null if nothing has to be done. */
  readonly fix: string | null;
}

export interface BenchOptions extends RemoteOptions {
  readonly transactions: number;
  readonly callers: number;
  readonly signer?: Address;
  readonly to?: Address;
}

export interface BenchReport {
  readonly node: string;
  readonly accepted: number;
  readonly failed: number;
  readonly seconds: number;
  readonly createsPerSecond: number;
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number; readonly max: number };
  /** Seconds from the first create until all transactions were final; null if not all were final in time. */
  readonly confirmedSeconds: number | null;
}

export interface ChaosOptions extends CommandOptions {
  readonly minutes: number;
  readonly nodes: number;
  readonly seed: number;
  readonly rate: number;
  readonly output: string;
  readonly pooler?: string;
  readonly from?: string;
  readonly disk?: string;
}

export interface ChaosReport {
  readonly seed: number;
  /** `no verdict`: something is wrong, but this machine was stalled, so it proves nothing. */
  readonly verdict: "held" | "broken" | "no verdict";
  readonly seconds: number;
  readonly faults: number;
  readonly byFault: Readonly<Record<string, number>>;
  /** Requests that were answered with 2xx. */
  readonly accepted: number;
  readonly transactions: number;
  readonly confirmed: number;
  /** Signed bytes that arrived at an endpoint. */
  readonly sent: number;
  /** Outcomes that the receiver of webhooks took. */
  readonly delivered: number;
  readonly takeovers: number;
  readonly stops: number;
  readonly orders: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
  /** Longest stall of the process that drew the faults. */
  readonly stalledMs: number;
  readonly violations: readonly string[];
  /** Directory with the timeline and the history. */
  readonly output: string;
}

export interface DiagnosticActions {
  doctor(options: CommandOptions): Promise<readonly Finding[]>;
  bench(options: BenchOptions): Promise<BenchReport>;
  chaos(options: ChaosOptions): Promise<ChaosReport>;
  /** Writes a configuration file for a new installation; resolves with its path. */
  init(options: CommandOptions): Promise<{ readonly file: string }>;
}

export function addDiagnostics(program: Command, { actions, io }: { actions: DiagnosticActions; io: CliIo }): void {
  const init = program
    .command("init")
    .description("write a fencepost.config.ts with comments; never over one that is there");
  answerWith(init, io, {
    ask: actions.init,
    show: ({ file }) => `wrote ${file}; fill it in, then check it with: fencepost doctor\n`,
  });
  const doctor = program
    .command("doctor")
    .description(
      "check database, chain, clocks, keys and versions, and say what to correct; exit code 1 with mistakes",
    );
  answerWith(doctor, io, {
    doing: "checking database, chains, keys and this machine",
    ask: async (options) => ({ findings: await actions.doctor(options) }),
    show: findingLines,
    judge: ({ findings }) => {
      if (findings.some(({ sign }) => sign === "mistake"))
        throw new CommandFailed(["correct the mistakes above before you run a node here"]);
    },
  });
  const bench = program
    .command("bench")
    .description("measure creates: of a node with a database and a chain of its own, or of the one that is named");
  addressed(answerWith(bench, io, { ask: actions.bench, show: benchTable, doing: null }))
    .option("--transactions <number>", "how many creates", positive, 1_000)
    .option("--callers <number>", "how many at once", positive, 16)
    .option("--signer <address>", "of a node that is named: whose transactions; they cost gas")
    .option("--to <address>", "where they go with nothing; the signer itself by default");
  const chaos = program
    .command("chaos")
    .description(
      "test with faults: nodes killed and frozen, wires cut, an endpoint that lies, reorgs, under load; exit code 1 if an invariant does not hold at the end (demo shows one failover)",
    );
  answerWith(chaos, io, { ask: actions.chaos, doing: null, show: chaosTable, judge: judgeChaos })
    .option("--minutes <number>", "how long faults strike", positive, 1)
    .option("--nodes <number>", "how many nodes", positive, 3)
    .option("--seed <number>", "draws the same faults and requests again", positive, 1)
    .option("--rate <number>", "how many transactions a second", positive, 8)
    .option("--output <directory>", "where timeline.svg and history.jsonl are written", "fencepost-chaos")
    .option("--pooler <program>", "PgBouncer's program: every second node reaches the database through it")
    .option("--from <directory>", "another release, installed there: nodes are upgraded from it as they restart")
    .option("--disk <directory>", "on a small file system of its own: the database is there, and a fault fills it");
}

const MOST_SHOWN = 20;

function chaosTable({ seconds, byFault, orders, refused, violations, stalledMs, ...rest }: ChaosReport) {
  const total = (counts: Readonly<Record<string, number>>) =>
    Object.values(counts).reduce((sum, each) => sum + each, 0);
  const { verdict, seed, output, ...counts } = rest;
  const kinds = Object.entries(byFault).sort(([, a], [, b]) => b - a);
  return [
    figures({
      ...{ verdict, seed },
      time: `${seconds.toFixed(1)} s`,
      ...counts,
      ...{ orders: total(orders), "refused requests": total(refused), "longest stall": `${stalledMs} ms` },
      violations: violations.length,
      written: `${output}/timeline.svg, ${output}/history.jsonl`,
    }),
    `\nfaults\n${figures(Object.fromEntries(kinds))}`,
    ...(violations.length === 0 ? [] : [`\n${violations.slice(0, MOST_SHOWN).join("\n")}\n`]),
  ].join("");
}

function judgeChaos({ verdict, violations, seed }: ChaosReport) {
  if (verdict === "broken")
    throw new CommandFailed([`${violations.length} violations: play it again with --seed ${seed}, and report it`]);
  if (verdict === "no verdict")
    throw new CommandFailed(["no verdict: this machine was stalled; repeat it where nothing else runs"]);
}

const SIGNS = { ok: ["ok", "green"], warning: ["warning", "yellow"], mistake: ["MISTAKE", "red"] } as const;

function findingLines({ findings }: { readonly findings: readonly Finding[] }, view: View) {
  const lines = findings.map(({ sign, text, fix }) => {
    const [word, colour] = SIGNS[sign];
    const advice = fix === null ? "" : `${indented(`${" ".repeat(9)}→ `, inert(fix), view)}\n`;
    const line = indented(" ".repeat(9), inert(text), view).slice(9);
    return `${view.paint(colour, word.padEnd(9))}${line}\n${advice}`;
  });
  const of = (sign: Finding["sign"]) => findings.filter((each) => each.sign === sign).length;
  const summary = `mistakes: ${of("mistake")}, warnings: ${of("warning")}, ok: ${of("ok")}\n`;
  return `${lines.join("")}\n${summary}`;
}

function benchTable(report: BenchReport) {
  const { node, accepted, failed, seconds, createsPerSecond, latencyMs, confirmedSeconds } = report;
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  return figures({
    node,
    accepted,
    failed,
    time: `${seconds.toFixed(2)} s`,
    "creates a second": createsPerSecond.toFixed(0),
    median: ms(latencyMs.p50),
    "95th percentile": ms(latencyMs.p95),
    "99th percentile": ms(latencyMs.p99),
    slowest: ms(latencyMs.max),
    "until all were final": confirmedSeconds === null ? "not all were" : `${confirmedSeconds.toFixed(1)} s`,
  });
}
