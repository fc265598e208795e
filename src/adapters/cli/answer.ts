/** Prints a command's result on standard output: for people, or as JSON with `--json`. */
import type { Command } from "commander";
import { type Busy, type Output, type View, viewOn } from "./terminal.ts";

export interface CommandOptions {
  /** Path of the configuration file; default: the one in the working directory. */
  readonly config?: string;
  readonly json?: boolean;
  /** Whole ids and times, also if they do not fit into the terminal. */
  readonly wide?: boolean;
  readonly verbose?: boolean;
}

/** How a command's result is formatted for people, and how a result that means failure is recognised. */
export interface Shown<T> {
  readonly show: (answer: T, view: View) => string;
  /** Throws if the command's result means failure. Called after the result is printed. */
  readonly judge?: (answer: T) => void;
}

type Ask<O, T> = (options: O, ...args: string[]) => Promise<T>;

/**
 * Makes a command that prints the result of `ask`. `ask` receives the command's options and arguments. `doing`: text
 * for a terminal if it takes longer than a second; null: `ask` shows its own.
 */
export function answerWith<O extends CommandOptions, T>(
  command: Command,
  io: Output,
  { ask, doing = command.name(), ...how }: Shown<T> & { readonly ask: Ask<O, T>; readonly doing?: string | null },
): Command {
  return command.action(async () => {
    const options = command.optsWithGlobals<O>();
    const asking = () => ask(options, ...command.args);
    const answer = await (doing === null ? asking() : during(io, doing, asking));
    print(answer, io, { ...options, ...how });
  });
}

/** Runs `work` while a terminal shows that the command is busy with it. */
export async function during<T>(io: Pick<Output, "busy">, what: string, work: (busy: Busy) => Promise<T>): Promise<T> {
  const busy = io.busy(what);
  try {
    return await work(busy);
  } finally {
    busy.end();
  }
}

/** Prints a command's result, then throws if the result means failure. */
export function print<T>(
  answer: T,
  io: Output,
  { show, judge, json, ...options }: Shown<T> & Pick<CommandOptions, "json" | "wide">,
): void {
  io.stdout(json === true ? `${JSON.stringify(answer, null, 2)}\n` : show(answer, viewOn(io, options)));
  judge?.(answer);
}

/** Copies an object without its undefined members. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
