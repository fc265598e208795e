/**
 * `init` writes a configuration, `doctor` checks it, `bench` measures throughput, and `chaos` tests fault tolerance.
 */
import type { Command } from "commander";
import type { Address } from "../../client/index.ts";
import { answerWith, type CommandOptions } from "./answer.ts";
import { CommandFailed } from "./failure.ts";
import type { DemoReport } from "./present.ts";
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
  readonly transactions: number;
  readonly kills: number;
}

export interface ChaosReport
  extends Pick<DemoReport, "accepted" | "confirmed" | "lost" | "duplicate" | "gaps" | "seconds"> {
  readonly kills: number;
  readonly freezes: number;
  readonly restarts: number;
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
      "test with faults for as long as you like: kill, restart and freeze random nodes again and again; exit code 1 if an audit finds a loss (demo shows one failover)",
    );
  answerWith(chaos, io, {
    ask: actions.chaos,
    doing: null,
    show: ({ seconds, ...counts }) => figures({ ...counts, time: `${seconds.toFixed(1)} s` }),
    judge: ({ lost, duplicate, gaps }) => {
      if (lost + duplicate + gaps > 0)
        throw new CommandFailed(["the audit failed: a nonce or a transaction is not as it should be"]);
    },
  })
    .option("--transactions <number>", "how many transfers", positive, 500)
    .option("--kills <number>", "how many faults: three kills with a restart, then a freeze, and so on", positive, 4);
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
