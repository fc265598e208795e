/** What commands print on standard output: for people, or with `--json` for programs. */
import type { Command } from "commander";
import { type Output, type Paint, painterFor } from "./terminal.ts";

export interface CommandOptions {
  /** Instead of the file in the working directory. */
  readonly config?: string;
  readonly json?: boolean;
  readonly verbose?: boolean;
}

/** How a command that ends with one answer gets it, and how people read it. */
export interface Answer<From, T> {
  readonly ask: (from: From) => Promise<T>;
  readonly show: (answer: T, paint: Paint) => string;
  /** Throws where the command failed all the same; it is printed by then. */
  readonly judge?: (answer: T) => void;
}

export function answerWith<O extends CommandOptions, T>(command: Command, io: Output, how: Answer<O, T>): void {
  command.action(async () => {
    const options = command.optsWithGlobals<O>();
    tell(await how.ask(options), io, { ...how, json: options.json === true });
  });
}

/** One answer, printed and then judged. */
export function tell<T>(
  answer: T,
  io: Output,
  { show, judge, json }: Pick<Answer<never, T>, "show" | "judge"> & { readonly json: boolean },
): void {
  io.stdout(json ? `${JSON.stringify(answer, null, 2)}\n` : show(answer, painterFor(io.screen())));
  judge?.(answer);
}

/** What only the given options say: absent ones are left out, not sent as undefined. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const said = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(said) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
