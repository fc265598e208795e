import { type Colour, type Paint, plainly } from "./terminal.ts";

export type Row = readonly string[];

/** Colour of a cell, if any. */
export type CellColour = (cell: string, column: number) => Colour | null;

/**
 * Formats columns, two blanks apart. Colours are added last, because they take no width. Cells contain texts of
 * others (reasons, request ids), so control characters become blanks.
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

/** Columns by their heads: a member of the item, or a text about it. */
type Columns<T> = Readonly<Record<string, keyof T | ((item: T) => Cell)>>;

/** A table with a headline. A cell without a value is `-`. */
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

/** Shows a list as a table, or `none` if it is empty. */
export function tableOf<T>(none: string, columns: Columns<T>, colourOf?: CellColour) {
  return ({ items }: { readonly items: readonly T[] }, paint: Paint) =>
    items.length === 0 ? `${none}\n` : listing(items, paint, columns, colourOf);
}

/** Names and values in two columns. A fact without a value is left out; one with several has a row for each. */
export function factsTable(
  facts: Readonly<Record<string, Cell | readonly string[]>>,
  paint: Paint,
  colourOf: (cell: string) => Colour | null = () => null,
): string {
  const rows = Object.entries(facts).flatMap(([name, value]) => [value ?? []].flat().map((each) => [name, `${each}`]));
  return table(rows, paint, (cell, column) => (column === 0 ? "grey" : colourOf(cell)));
}

/** Names and right-aligned figures. */
export function figures(facts: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(facts).map(([name, value]) => `  ${name.padEnd(22)}${`${value}`.padStart(10)}\n`);
  return `\n${lines.join("")}\n`;
}

/** Removes control characters, which could move the terminal's cursor or overwrite its text. */
export function inert(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ");
}
