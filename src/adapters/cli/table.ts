import { type Colour, type Paint, plainly } from "./terminal.ts";

export type Row = readonly string[];

/** Returns the colour of a table cell, or null. */
export type CellColour = (cell: string, column: number) => Colour | null;

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
    return `${cells.join("  ")}\n`;
  };
  return shown.map(line).join("");
}

type Cell = string | number | null | undefined;

/** Columns of a table, keyed by heading. Each is a member of the item, or a function that returns the cell. */
type Columns<T> = Readonly<Record<string, keyof T | ((item: T) => Cell)>>;

/** Formats a table with headings. A cell without a value is `-`. */
export function listing<T>(
  items: readonly T[],
  paint: Paint,
  columns: Columns<NoInfer<T>>,
  colourOf?: CellColour,
): string {
  const rows = items.map((item) =>
    Object.values(columns).map((of) => String((typeof of === "function" ? of(item) : item[of]) ?? "-")),
  );
  const [headline = "", ...lines] = table([Object.keys(columns), ...rows], paint, colourOf).split("\n");
  return [paint("bold", headline), ...lines].join("\n");
}

/** Makes a function that formats a list as a table, or returns `none` if the list is empty. */
export function tableOf<T>(none: string, columns: Columns<T>, colourOf?: CellColour) {
  return ({ items }: { readonly items: readonly T[] }, paint: Paint) =>
    items.length === 0 ? `${none}\n` : listing(items, paint, columns, colourOf);
}

/**
 * Formats names and values in two columns. A name without a value is left out; a name with several values has one row
 * for each.
 */
export function factsTable(
  facts: Readonly<Record<string, Cell | readonly string[]>>,
  paint: Paint,
  colourOf: (cell: string) => Colour | null = () => null,
): string {
  const rows = Object.entries(facts).flatMap(([name, value]) => [value ?? []].flat().map((each) => [name, `${each}`]));
  return table(rows, paint, (cell, column) => (column === 0 ? "grey" : colourOf(cell)));
}

/** Formats names with right-aligned numbers. */
export function figures(facts: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(facts).map(([name, value]) => `  ${name.padEnd(22)}${`${value}`.padStart(10)}\n`);
  return `\n${lines.join("")}\n`;
}

/** Removes control characters, which could move the terminal's cursor or overwrite its text. */
export function inert(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ");
}

/** CSV as in RFC 4180, with lines that end in LF. */
export function csvOf(columns: readonly string[], rows: readonly object[], withHead = true) {
  const line = (cells: readonly unknown[]) => `${cells.map(csvCell).join(",")}\n`;
  const lines = rows.map((row) => line(columns.map((name) => (row as Record<string, unknown>)[name])));
  return `${withHead ? line(columns) : ""}${lines.join("")}`;
}

function csvCell(value: unknown) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
