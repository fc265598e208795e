/** Output of a command: a terminal, or a file, a pipe, another program. */

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** False: NO_COLOR is set, or the terminal has no colours. */
  readonly colours: boolean;
}

export interface Output {
  stdout(text: string): void;
  /** The terminal of standard output; null if it is none. */
  screen(): Screen | null;
}

export interface CliIo extends Output {
  readonly version: string;
  stderr(text: string): void;
  /** True when the reader of standard output has closed it (`| head -1`): endless commands end. */
  readerLeft(): boolean;
  now(): Date;
  sleep(ms: number): Promise<void>;
  /** A new unique id. */
  newId(): string;
  /** A file's text; `-` is standard input. */
  read(path: string): Promise<string>;
}

const COLOURS = { red: 31, green: 32, yellow: 33, cyan: 36, grey: 90, bold: 1 } as const;
export type Colour = keyof typeof COLOURS;

/** Colours a text, or returns it unchanged. */
export type Paint = (colour: Colour, text: string) => string;

export const plainly: Paint = (_, text) => text;

export function painterFor(screen: Screen | null): Paint {
  if (screen?.colours !== true) return plainly;
  return (colour, text) => (text === "" ? text : `\u001b[${COLOURS[colour]}m${text}\u001b[0m`);
}

/** Redraws from the top left corner, and erases the rest of each line and of the screen. */
export function redrawn(text: string): string {
  return `\u001b[H${text.replaceAll("\n", "\u001b[K\n")}\u001b[J`;
}

export const CLEARED = "\u001b[2J";
