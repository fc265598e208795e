/** Tables and lists of facts for people, fitted to the width of the terminal. */
import { cut, indented, inert, middle, timeInWords, wrapped } from "./shorten.ts";
import { type Colour, type Paint, plainly, type View } from "./terminal.ts";

export type Row = readonly string[];

/** Returns the colour of a table cell, or null. */
export type CellColour = (cell: string, column: number) => Colour | null;

const GAP = "  ";

/**
 * Formats a table whose columns are two blanks apart. Colours are added after the padding, because they have no width.
 * Control characters become blanks, because cells contain foreign texts (reasons, request ids).
 */
export function table(rows: readonly Row[], paint: Paint = plainly, colourOf: CellColour = () => null): string {
  const shown = rows.map((row) => row.map(inert));
  const widths = (shown[0] ?? []).map((_, column) => Math.max(...shown.map((row) => row[column]?.length ?? 0)));
  const line = (row: Row) => {
    const last = row.findLastIndex((cell) => cell !== "");
    const cells = row.slice(0, last + 1).map((cell, column) => {
      const padded = column === last ? cell : cell.padEnd(widths[column] ?? 0);
      const colour = colourOf(cell, column);
      return colour === null ? padded : paint(colour, padded);
    });
    return `${cells.join(GAP)}\n`;
  };
  return shown.map(line).join("");
}

type Value = string | number | null | undefined;
type Of<T> = keyof T | ((item: T) => Value);

/** A column and how its cells get shorter: ids lose their middle, times become ages, prose loses its end. */
export interface Column<T> {
  readonly of: Of<T>;
  readonly as: "text" | "id" | "time" | "prose";
  /** Columns with the highest number are left out first if a row does not fit; 0: never left out. */
  readonly spare: number;
}

/** Columns of a table, keyed by heading. A bare member or function is text that is never shortened. */
export type Columns<T> = Readonly<Record<string, Of<T> | Column<T>>>;

export function id<T>(of: Of<T>, spare = 0): Column<T> {
  return { of, as: "id", spare };
}

export function time<T>(of: Of<T>, spare = 0): Column<T> {
  return { of, as: "time", spare };
}

/** Text for people. The last column of a table wraps; any other one is cut. */
export function prose<T>(of: Of<T>, spare = 0): Column<T> {
  return { of, as: "prose", spare };
}

export function spare<T>(of: Of<T>, rank: number): Column<T> {
  return { of, as: "text", spare: rank };
}

interface Filled {
  readonly as: Column<unknown>["as"];
  readonly spare: number;
  /** With the heading first, if the table has headings. */
  readonly cells: Row;
  readonly hasHeading: boolean;
  readonly natural: number;
  /** Width below which the column's cells cannot be told apart or read. */
  readonly least: number;
}

const LEAST_HEX = 11;
const LEAST_ID = 13;
const LEAST_PROSE = 20;
/** Width of a cell that was cut and can still be told from another one. */
const LEAST_CUT = 9;

function filled<T>(items: readonly T[], { of, as, spare }: Column<T>, heading: string | null, now: Date | null) {
  const text = (item: T) => {
    const value = (typeof of === "function" ? of(item) : item[of]) ?? "-";
    return inert(as === "time" && now !== null ? timeInWords(String(value), now) : String(value));
  };
  const values = items.map(text);
  const longest = Math.max(0, ...values.map((value) => value.length));
  const head = heading === null ? [] : [heading];
  const natural = Math.max(longest, heading?.length ?? 0);
  const isHex = values.every((value) => value.startsWith("0x") || value === "-");
  const least = as === "id" ? (isHex ? LEAST_HEX : LEAST_ID) : as === "prose" ? LEAST_PROSE : natural;
  const column = { as, spare, cells: [...head, ...values], hasHeading: heading !== null, natural };
  return { ...column, least: Math.min(natural, Math.max(least, heading?.length ?? 0)) };
}

function widthOf(columns: readonly Filled[]) {
  return columns.reduce((sum, { least }) => sum + least, 0) + GAP.length * Math.max(0, columns.length - 1);
}

/** Leaves out columns until the others fit, then widens these: prose first, then ids from left to right. */
function fitted(columns: readonly Filled[], width: number): readonly Row[] {
  let kept = columns;
  for (let rank = Math.max(0, ...columns.map(({ spare }) => spare)); rank > 0; rank--) {
    if (widthOf(kept) > width) kept = kept.filter((column) => column.spare !== rank);
  }
  // A terminal that is too narrow even for these: a column that would be cut beyond recognition is left out too.
  while (kept.length > 1 && widthOf(kept) - width > cuttable(kept.at(-1))) kept = kept.slice(0, -1);
  const sizes = sizesOf(kept, width);
  const shown = kept.map((column) => {
    const { as, cells } = column;
    const size = sizes.get(column) ?? 0;
    if (as === "id") return cells.map((cell) => [middle(cell, size)]);
    if (as === "prose" && column === kept.at(-1)) return cells.map((cell) => wrapped(cell, size, middle));
    return cells.map((cell) => [cut(cell, size)]);
  });
  return inRows(shown);
}

/** Width that a column can lose and still be read. */
function cuttable(column: Filled | undefined) {
  return Math.max(0, (column?.least ?? 0) - LEAST_CUT);
}

function sizesOf(columns: readonly Filled[], width: number): ReadonlyMap<Filled, number> {
  const sizes = new Map(columns.map((column) => [column, column.least]));
  let free = width - widthOf(columns);
  for (const column of [...columns.filter(({ as }) => as === "prose"), ...columns]) {
    const size = sizes.get(column) ?? 0;
    const grown = Math.min(column.natural - size, Math.max(0, free));
    free -= grown;
    sizes.set(column, size + grown);
  }
  // If the columns are still too wide, shorten the last one.
  const last = columns.at(-1);
  if (free < 0 && last !== undefined) sizes.set(last, Math.max(1, last.least + free));
  return sizes;
}

/** Transposes columns of cells, each of one or more lines, to rows of one line. */
function inRows(columns: readonly (readonly (readonly string[])[])[]): readonly Row[] {
  const count = columns[0]?.length ?? 0;
  return Array.from({ length: count }, (_, at) => {
    const cells = columns.map((column) => column[at] ?? []);
    const height = Math.max(...cells.map((lines) => lines.length));
    return Array.from({ length: height }, (__, line) => cells.map((lines) => lines[line] ?? ""));
  }).flat();
}

function hasValue({ cells, hasHeading }: Filled) {
  return cells.slice(hasHeading ? 1 : 0).some((cell) => cell !== "");
}

function rowsOf<T>(items: readonly T[], { width, now }: View, columns: Columns<T>, hasHeadings: boolean) {
  const all = Object.entries(columns).map(([heading, column]) => {
    const whole: Column<T> = typeof column === "object" ? column : { of: column, as: "text", spare: 0 };
    return filled(items, whole, hasHeadings ? heading : null, width === null ? null : now);
  });
  if (width === null) return inRows(all.map(({ cells }) => cells.map((cell) => [cell])));
  // A column without any value takes room from the others.
  return fitted(items.length === 0 ? all : all.filter(hasValue), width);
}

/** Formats a table without headings. */
export function rows<T>(items: readonly T[], view: View, columns: Columns<NoInfer<T>>): string {
  return table(rowsOf(items, view, columns, false), view.paint);
}

/** Formats a table with headings. A cell without a value is `-`. */
export function listing<T>(
  items: readonly T[],
  view: View,
  columns: Columns<NoInfer<T>>,
  colourOf?: CellColour,
): string {
  const { paint } = view;
  const [headline = "", ...lines] = table(rowsOf(items, view, columns, true), paint, colourOf).split("\n");
  return [paint("bold", headline), ...lines].join("\n");
}

/** Makes a function that formats a list as a table, or returns `none` if the list is empty. */
export function tableOf<T>(none: string, columns: Columns<T>, colourOf?: CellColour) {
  return ({ items }: { readonly items: readonly T[] }, view: View) =>
    items.length === 0 ? `${indented("", none, view)}\n` : listing(items, view, columns, colourOf);
}

/**
 * Formats names and values in two columns. A name without a value is left out; a name with several values has one row
 * for each. A long value wraps; an id is never cut, because it is to be copied.
 */
export function factsTable(
  facts: Readonly<Record<string, Value | readonly string[]>>,
  { paint, width }: View,
  colourOf: (cell: string) => Colour | null = () => null,
): string {
  const given = Object.entries(facts).flatMap(([name, value]) => [value ?? []].flat().map((each) => [name, `${each}`]));
  const names = Math.max(0, ...given.map(([name = ""]) => name.length));
  const free = width === null ? Number.POSITIVE_INFINITY : Math.max(LEAST_PROSE, width - names - GAP.length);
  const lines = given.flatMap(([name = "", value = ""]) =>
    wrapped(inert(value), free).map((line, at) => [at === 0 ? name : "", line]),
  );
  return table(lines, paint, (cell, column) => (column === 0 ? "grey" : colourOf(cell)));
}

/** Formats names with right-aligned numbers. */
export function figures(facts: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(facts).map(([name, value]) => `  ${name.padEnd(22)}${`${value}`.padStart(10)}\n`);
  return `\n${lines.join("")}\n`;
}

/** CSV as in RFC 4180, with lines that end in LF. */
export function csvOf(columns: readonly string[], rows: readonly object[], withHead = true) {
  const line = (cells: readonly unknown[]) => `${cells.map(csvCell).join(",")}\n`;
  const lines = rows.map((row) => line(columns.map((name) => (row as Record<string, unknown>)[name])));
  return `${withHead ? line(columns) : ""}${lines.join("")}`;
}

/** Spreadsheets run a text that begins like a formula, and callers choose request ids: it gets an apostrophe. */
function csvCell(value: unknown) {
  const raw = String(value ?? "");
  const text = typeof value === "string" && /^[=+\-@\t\r\n＝＋－＠]/.test(raw) ? `'${raw}` : raw;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
