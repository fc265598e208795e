/** Prints a command's result on standard output: for people, or as JSON with `--json`. */
import type { Command } from "commander";
import { type Output, type Paint, painterFor } from "./terminal.ts";

export interface CommandOptions {
  /** File to read instead of the one in the working directory. */
  readonly config?: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

/** How a command obtains its result, and how people read it. */
export interface Answer<From, T> {
  readonly ask: (from: From) => Promise<T>;
  readonly show: (answer: T, paint: Paint) => string;
  /** Throws if the result means failure. The result is printed before. */
  readonly judge?: (answer: T) => void;
}

export function answerWith<O extends CommandOptions, T>(command: Command, io: Output, how: Answer<O, T>): void {
  command.action(async () => {
    const options = command.optsWithGlobals<O>();
    print(await how.ask(options), io, { ...how, json: options.json === true });
  });
}

/** Prints a result, then judges it. */
export function print<T>(
  answer: T,
  io: Output,
  { show, judge, json }: Pick<Answer<never, T>, "show" | "judge"> & { readonly json: boolean },
): void {
  io.stdout(json ? `${JSON.stringify(answer, null, 2)}\n` : show(answer, painterFor(io.screen())));
  judge?.(answer);
}

/** Leaves out members that are undefined. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
