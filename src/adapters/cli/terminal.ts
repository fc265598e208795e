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
  now(): Date;
  /** Shows on standard error what the command waits for, from one second on. Prints nothing without a terminal. */
  busy(what: string): Busy;
}

/** A running piece of work, shown by a spinner. */
export interface Busy {
  /** Replaces the text beside the spinner, such as `12 of 100 sent`. */
  update(what: string): void;
  end(): void;
}

export interface CliIo extends Output {
  readonly version: string;
  stderr(text: string): void;
  /** Asks a question and resolves with the typed line; null if nobody can answer, as in a script. */
  readonly ask: ((question: string) => Promise<string>) | null;
  /** True if the reader of standard output has closed it (`| head -1`); endless commands must then end. */
  readerLeft(): boolean;
  /** Aborted when the reader closes it. */
  readonly whenReaderLeft: AbortSignal;
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
  /** Lets other exports write to the file. */
  close(): Promise<void>;
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

/** How a result is formatted for people. */
export interface View {
  readonly paint: Paint;
  /** Width to fit into; null: nothing is shortened, because there is no terminal or `--wide` is set. */
  readonly width: number | null;
  readonly now: Date;
  /** Options that chose the node, such as ` --profile production`. Printed commands repeat them. */
  readonly reach: string;
}

interface ViewOptions {
  readonly wide?: boolean;
  readonly url?: string;
  readonly profile?: string;
}

export function viewOn(output: Pick<Output, "screen" | "now">, { wide, url, profile }: ViewOptions): View {
  const screen = output.screen();
  const width = wide === true || screen === null ? null : screen.columns;
  const reach = `${url === undefined ? "" : ` --url ${url}`}${profile === undefined ? "" : ` --profile ${profile}`}`;
  return { paint: painterFor(screen), width, now: output.now(), reach };
}

/** Output that redraws the screen from the top left corner and erases the rest of each line and of the screen. */
export function redrawn(text: string): string {
  return `\u001b[H${text.replaceAll("\n", "\u001b[K\n")}\u001b[J`;
}

export const CLEARED = "\u001b[2J";
