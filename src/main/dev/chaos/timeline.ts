/** Draws a campaign: faults as bars over time, and below them what was accepted and what became final. */
import type { FaultRecord } from "./faults.ts";

export interface Progression {
  readonly atMs: number;
  readonly accepted: number;
  readonly final: number;
}

const WIDTH = 1_200;
const LEFT = 170;
const ROW = 16;
const TOP = 34;
const CHART = 140;
const MOST_WIDTH = WIDTH - LEFT - 20;

export function timeline(
  title: string,
  {
    faults,
    progress,
    totalMs,
  }: {
    readonly faults: readonly FaultRecord[];
    readonly progress: readonly Progression[];
    readonly totalMs: number;
  },
): string {
  const names = [...new Set(faults.map(({ name }) => name))].sort();
  const x = (ms: number) => (LEFT + (MOST_WIDTH * ms) / totalMs).toFixed(1);
  const bottom = TOP + names.length * ROW;
  const height = bottom + CHART + 40;
  const rows = names.flatMap((name, index) => {
    const y = TOP + index * ROW;
    const own = faults.filter((fault) => fault.name === name);
    const bars = own.map(({ fromMs, untilMs, part }) => {
      const width = Math.max(1.5, (MOST_WIDTH * (untilMs - fromMs)) / totalMs).toFixed(1);
      return `<rect x="${x(fromMs)}" y="${y + 3}" width="${width}" height="${ROW - 6}" fill="#c2410c" fill-opacity="0.65"><title>${part}, ${seconds(fromMs)} to ${seconds(untilMs)}</title></rect>`;
    });
    return [`<text x="${LEFT - 8}" y="${y + 12}" text-anchor="end">${name} (${own.length})</text>`, ...bars];
  });
  const most = Math.max(1, ...progress.map(({ accepted }) => accepted));
  const line = (of: (each: Progression) => number, colour: string) => {
    const points = progress.map((each) => `${x(each.atMs)},${(bottom + CHART - (CHART * of(each)) / most).toFixed(1)}`);
    return `<polyline points="${points.join(" ")}" fill="none" stroke="${colour}" stroke-width="1.5"/>`;
  };
  const marks = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      `<text x="${x(totalMs * share)}" y="${height - 12}" text-anchor="middle">${seconds(totalMs * share)}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="11" fill="#334155">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="10" y="20" font-size="14">${title}</text>`,
    ...rows,
    `<text x="${LEFT - 8}" y="${bottom + 14}" text-anchor="end">accepted ${progress.at(-1)?.accepted ?? 0}</text>`,
    `<text x="${LEFT - 8}" y="${bottom + 30}" text-anchor="end" fill="#15803d">final ${progress.at(-1)?.final ?? 0}</text>`,
    line(({ accepted }) => accepted, "#334155"),
    line(({ final }) => final, "#15803d"),
    ...marks,
    "</svg>\n",
  ].join("\n");
}

const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;
