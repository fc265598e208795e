import { type ChildProcess, fork } from "node:child_process";
import { V8_OPTIONS } from "../support/simulation/v8-options.ts";
import type { Progress, SeedOrder } from "./seed-player.ts";

/** Time limit of one run: with some mutants a simulation never ends. */
const RUN_MS = 30_000;

/** A process that plays seeds with mutants, and is replaced after a mutant that ends it or does not end. */
export class Player {
  private readonly bundle: string;
  private readonly env: NodeJS.ProcessEnv;
  private child: ChildProcess | null = null;
  private readonly arrived: Progress[] = [];
  private wake: () => void = () => undefined;
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
      this.wake();
    });
    child.on("exit", () => {
      if (this.child === child) this.child = null;
      this.wake();
    });
    const ready = await this.next();
    if (ready?.kind === "ready") this.atLoad = ready.atLoad;
    return ready !== null;
  }

  /** Plays one seed, and reports each step. Null: the process has ended, or did not end in time. */
  async play(order: SeedOrder, report: (progress: Progress | null) => void): Promise<void> {
    if (this.child === null && !(await this.start())) return report(null);
    this.child?.send(order);
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
    const timer = setTimeout(() => this.wake(), RUN_MS);
    await new Promise<void>((resolve) => {
      this.wake = resolve;
    });
    clearTimeout(timer);
    return this.arrived.shift() ?? null;
  }
}
