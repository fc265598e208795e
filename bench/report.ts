import type { Comparison } from "./against.ts";
import type { BenchOptions } from "./options.ts";

/** One line of the table. */
export interface Figure {
  readonly measure: string;
  readonly value: number;
  readonly unit: Unit;
  /** What it is compared with, measured in the same turns. */
  readonly reference?: { readonly name: string; readonly value: number; readonly ratio: number };
  /** Of the ratio where there is a reference, else of the value. */
  readonly bar?: { readonly atLeast: number } | { readonly atMost: number };
  /** The bar of a finished Fencepost; shown, and not yet demanded. */
  readonly goal?: { readonly atLeast: number } | { readonly atMost: number };
}

export type Unit = "/s" | "ms" | "MiB" | "per tx" | "µs per tx" | "% of a core";

type Limit = NonNullable<Figure["bar"]>;

export function missed(figures: readonly Figure[]): readonly Figure[] {
  return figures.filter((figure) => figure.bar !== undefined && !meets(figure, figure.bar));
}

export function meets(figure: Figure, limit: Limit): boolean {
  const judged = figure.reference?.ratio ?? figure.value;
  return "atLeast" in limit ? judged >= limit.atLeast : judged <= limit.atMost;
}

export function print(figures: readonly Figure[], { json }: Pick<BenchOptions, "json">): void {
  const lost = missed(figures);
  if (json) {
    process.stdout.write(`${JSON.stringify({ figures, missed: lost.map(({ measure }) => measure) })}\n`);
    return;
  }
  process.stdout.write(`${table([HEADINGS, ...figures.map(cells)])}\n`);
  for (const figure of lost) process.stdout.write(`MISSED ${figure.measure}: ${verdict(figure)}\n`);
  if (lost.length === 0) process.stdout.write("every bar is met\n");
}

const COMPARED = ["measure", "here", "there", "here, if there is 100 %", "95 % interval"];

export function printComparison(comparisons: readonly Comparison[], { json }: Pick<BenchOptions, "json">): void {
  if (json) {
    process.stdout.write(`${JSON.stringify({ comparisons })}\n`);
    return;
  }
  const rows = comparisons.map(({ measure, unit, here, there, better, from, to }) => [
    measure,
    amount(here, unit),
    amount(there, unit),
    share(better),
    `${share(from)} to ${share(to)}`,
  ]);
  process.stdout.write(`${table([COMPARED, ...rows])}\n`);
}

const HEADINGS = ["measure", "figure", "compared with", "ratio", "bar", "goal"];

function cells(figure: Figure): readonly string[] {
  const { reference, bar, goal } = figure;
  return [
    figure.measure,
    amount(figure.value, figure.unit),
    reference === undefined ? "" : `${reference.name} ${amount(reference.value, figure.unit)}`,
    reference === undefined ? "" : share(reference.ratio),
    bar === undefined ? "" : `${limit(figure, bar)} ${meets(figure, bar) ? "ok" : "MISSED"}`,
    goal === undefined ? "" : `${limit(figure, goal)} ${meets(figure, goal) ? "ok" : "not yet"}`,
  ];
}

function verdict(figure: Figure): string {
  const judged = figure.reference === undefined ? amount(figure.value, figure.unit) : share(figure.reference.ratio);
  return `${judged}, bar ${limit(figure, figure.bar as Limit)}`;
}

function limit(figure: Figure, bar: Limit): string {
  const text = (value: number) => (figure.reference === undefined ? amount(value, figure.unit) : share(value));
  return "atLeast" in bar ? `≥ ${text(bar.atLeast)}` : `≤ ${text(bar.atMost)}`;
}

function share(ratio: number): string {
  return `${(100 * ratio).toFixed(0)} %`;
}

function amount(value: number, unit: Unit): string {
  const digits = unit === "per tx" ? 3 : value < (unit === "/s" ? 10 : 100) ? 1 : 0;
  const number = value.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: digits });
  return unit === "/s" ? `${number}/s` : `${number} ${unit}`;
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ");
  return rows.map((row) => line(row).trimEnd()).join("\n");
}
