/** Output of a command, to a terminal or to a file, a pipe or another program. */

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** True if colours are printed; false if NO_COLOR is set or the terminal has no colours. */
  readonly colours: boolean;
}

export interface Output {
  stdout(text: string): void;
  /** The terminal behind standard output; null if standard output is not a terminal. */
  screen(): Screen | null;
}

export interface CliIo extends Output {
  readonly version: string;
  stderr(text: string): void;
  /** True if the reader of standard output has closed it (`| head -1`); endless commands must then end. */
  readerLeft(): boolean;
  now(): Date;
  sleep(ms: number): Promise<void>;
  /** Returns a new unique id. */
  newId(): string;
  /** Reads a file's text; the path `-` means standard input. */
  read(path: string): Promise<string>;
  /** Opens a file that rows are appended to, with its position from the last time. */
  openExport(path: string): Promise<ExportFile>;
}

/** A file of exported rows, and beside it the position up to which they are complete. */
export interface ExportFile {
  /** Text that `mark` wrote last; null if there is none. */
  readonly position: string | null;
  /** Writes rows at this byte of the file, and cuts off what was behind it. */
  append(rows: string, atByte: number): Promise<void>;
  /** Replaces the position, in one step. */
  mark(position: string): Promise<void>;
}

const COLOURS = { red: 31, green: 32, yellow: 33, cyan: 36, grey: 90, bold: 1 } as const;
export type Colour = keyof typeof COLOURS;

/** Function that adds a colour to a text, or returns the text unchanged if colours are off. */
export type Paint = (colour: Colour, text: string) => string;

export const plainly: Paint = (_, text) => text;

export function painterFor(screen: Screen | null): Paint {
  if (screen?.colours !== true) return plainly;
  return (colour, text) => (text === "" ? text : `\u001b[${COLOURS[colour]}m${text}\u001b[0m`);
}

/** Output that redraws the screen from the top left corner and erases the rest of each line and of the screen. */
export function redrawn(text: string): string {
  return `\u001b[H${text.replaceAll("\n", "\u001b[K\n")}\u001b[J`;
}

export const CLEARED = "\u001b[2J";
