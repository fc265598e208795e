/** What commands know of whom they speak to: a person's terminal, or a file, a pipe, another program. */

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** False where NO_COLOR is set, or the terminal has none. */
  readonly colours: boolean;
}

export interface Output {
  stdout(text: string): void;
  /** Of standard output; null where that is no terminal. */
  screen(): Screen | null;
}

export interface CliIo extends Output {
  readonly version: string;
  stderr(text: string): void;
  /** Whoever read standard output has gone (`| head -1`): what goes on for ever ends. */
  readerLeft(): boolean;
  now(): Date;
  sleep(ms: number): Promise<void>;
  /** A new id that nobody else has. */
  newId(): string;
  /** A file's text; `-` is standard input. */
  read(path: string): Promise<string>;
}

const COLOURS = { red: 31, green: 32, yellow: 33, cyan: 36, grey: 90, bold: 1 } as const;
export type Colour = keyof typeof COLOURS;

/** Text in a colour, or as it is. */
export type Paint = (colour: Colour, text: string) => string;

export const plainly: Paint = (_, text) => text;

export function painterFor(screen: Screen | null): Paint {
  if (screen?.colours !== true) return plainly;
  return (colour, text) => (text === "" ? text : `\u001b[${COLOURS[colour]}m${text}\u001b[0m`);
}

/** From the top left corner, and nothing left over from before: each line to its end, then all below. */
export function redrawn(text: string): string {
  return `\u001b[H${text.replaceAll("\n", "\u001b[K\n")}\u001b[J`;
}

export const CLEARED = "\u001b[2J";
