/** Prints a command's result on standard output: for people, or as JSON with `--json`. */
import type { Command } from "commander";
import { type Output, type Paint, painterFor } from "./terminal.ts";

export interface CommandOptions {
  /** Path of the configuration file; default: the one in the working directory. */
  readonly config?: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

/** How a command's result is formatted for people, and how a result that means failure is recognised. */
export interface Shown<T> {
  readonly show: (answer: T, paint: Paint) => string;
  /** Throws if the command's result means failure. Called after the result is printed. */
  readonly judge?: (answer: T) => void;
}

/** Makes a command that prints the result of `ask`. `ask` receives the command's options and arguments. */
export function answerWith<O extends CommandOptions, T>(
  command: Command,
  io: Output,
  { ask, ...how }: Shown<T> & { readonly ask: (options: O, ...args: string[]) => Promise<T> },
): Command {
  return command.action(async () => {
    const options = command.optsWithGlobals<O>();
    print(await ask(options, ...command.args), io, { ...options, ...how });
  });
}

/** Prints a command's result, then throws if the result means failure. */
export function print<T>(answer: T, io: Output, { show, judge, json }: Shown<T> & Pick<CommandOptions, "json">): void {
  io.stdout(json === true ? `${JSON.stringify(answer, null, 2)}\n` : show(answer, painterFor(io.screen())));
  judge?.(answer);
}

/** Copies an object without its undefined members. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
