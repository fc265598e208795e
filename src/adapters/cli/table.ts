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
  const line = (row: Row): string => {
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

/** A table with a headline. */
export function listing(heads: Row, rows: readonly Row[], paint: Paint = plainly, colourOf?: CellColour): string {
  const [headline = "", ...lines] = table([heads, ...rows], paint, colourOf).split("\n");
  return [paint("bold", headline), ...lines].join("\n");
}

/** Names and values in two columns. Facts without a value are left out. */
export function factsTable(
  facts: readonly (readonly [string, string | null])[],
  paint: Paint,
  colourOf: (cell: string) => Colour | null = () => null,
): string {
  const rows = facts.flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
  return table(rows, paint, (cell, column) => (column === 0 ? "grey" : colourOf(cell)));
}

/** Names and right-aligned figures. */
export function figures(rows: readonly (readonly [string, string])[]): string {
  return `\n${rows.map(([name, value]) => `  ${name.padEnd(22)}${value.padStart(10)}\n`).join("")}\n`;
}

/** Removes control characters, which could move the terminal's cursor or overwrite its text. */
export function inert(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ");
}
