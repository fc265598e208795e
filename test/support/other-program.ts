import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

/** The first of these commands that is installed, with its leading arguments; null if none is. */
export function installed(...commands: readonly (readonly string[])[]): readonly string[] | null {
  return commands.find(([program = ""]) => spawnSync(program, ["--version"]).error === undefined) ?? null;
}

/** An external program that is started for a test and ended with it. */
export class OtherProgram {
  private readonly child: ChildProcess;
  private said = "";

  constructor(command: readonly string[], args: readonly string[], cwd: string) {
    const [program = "", ...before] = command;
    this.child = spawn(program, [...before, ...args], { cwd, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (data: Buffer) => {
        this.said = `${this.said}${data.toString()}`.slice(-20_000);
      });
    }
  }

  /** The program's latest output, for diagnosing a failure. */
  get output(): string {
    return this.said;
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, "exit");
    this.child.kill("SIGTERM");
    await ended;
  }
}
