import { type Colour, type Paint, plainly } from "./terminal.ts";

export type Row = readonly string[];

/** Which colour a cell has, if any. */
export type CellColour = (cell: string, column: number) => Colour | null;

/**
 * Columns as wide as their widest cell, two blanks between, nothing at the end of a line. Colours are put on afterwards: they
 * take no width. What others wrote (reasons, request ids) is in cells: control characters are shown as blanks.
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

/** Without what could move the cursor of a terminal, or write over what stands there. */
export function inert(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ");
}
