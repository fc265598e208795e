import { type ChildProcess, fork } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { V8_OPTIONS } from "../support/simulation/v8-options.ts";
import type { Progress, SeedJob } from "./seed-player.ts";

/** Time limit of one run: with some mutants a simulation never ends. */
const RUN_MS = 60_000;

/** A process that plays seeds with mutants, and is replaced after a mutant that ends it or does not end. */
export class Player {
  private readonly bundle: string;
  private readonly env: NodeJS.ProcessEnv;
  private child: ChildProcess | null = null;
  private readonly arrived: Progress[] = [];
  private readonly news = new EventEmitter();
  /** Mutants whose code runs while the program is loaded. Such a mutant must be on from the beginning. */
  atLoad: readonly number[] = [];

  /** `mutant` is on from the beginning; null: none. */
  constructor(bundle: string, mutant: number | null) {
    this.bundle = bundle;
    this.env = { ...process.env, FENCEPOST_MUTANT: String(mutant ?? -1) };
  }

  /** False if the program cannot be loaded. */
  async start(): Promise<boolean> {
    const child = fork(this.bundle, { execArgv: V8_OPTIONS, stdio: "ignore", env: this.env });
    this.child = child;
    this.arrived.length = 0;
    child.on("message", (progress) => {
      this.arrived.push(progress as Progress);
      this.news.emit("arrived");
    });
    child.on("exit", () => {
      if (this.child === child) this.child = null;
      this.news.emit("arrived");
    });
    const ready = await this.next();
    if (ready?.kind === "ready") this.atLoad = ready.atLoad;
    return ready !== null;
  }

  /** Plays one seed, and reports each step. Null: the process has ended, or did not end in time. */
  async play(job: SeedJob, report: (progress: Progress | null) => void): Promise<void> {
    if (this.child === null && !(await this.start())) return report(null);
    this.child?.send(job);
    for (let progress = await this.next(); progress?.kind !== "done"; progress = await this.next()) {
      report(progress);
      if (progress === null) return this.stop();
    }
  }

  stop(): void {
    this.child?.kill("SIGKILL");
    this.child = null;
  }

  /** The next message; null if none comes. */
  private async next(): Promise<Progress | null> {
    const first = this.arrived.shift();
    if (first !== undefined) return first;
    if (this.child === null) return null;
    await once(this.news, "arrived", { signal: AbortSignal.timeout(RUN_MS) }).catch(() => undefined);
    return this.arrived.shift() ?? null;
  }
}
