export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Exposition {
  readonly samples: Sample[];
  /** The type of each metric by name: counter, gauge, histogram or summary. */
  readonly types: ReadonlyMap<string, string>;
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

/** A strict parser of the Prometheus text format: throws on a line that is neither comment, sample nor blank. */
export function parseExposition(text: string): Exposition {
  const samples: Sample[] = [];
  const types = new Map<string, string>();
  for (const line of text.split("\n")) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line);
    if (type !== null) types.set(type[1] ?? "", type[2] ?? "");
    else if (line !== "" && !line.startsWith("# HELP ")) samples.push(parseSample(line));
  }
  return { samples, types };
}

function parseSample(line: string): Sample {
  const match = SAMPLE.exec(line);
  const value = Number(match?.[3]?.replace("+Inf", "Infinity"));
  if (match === null || (Number.isNaN(value) && match[3] !== "Nan")) throw new Error(`not a sample: ${line}`);
  const labels = [...(match[2] ?? "").matchAll(LABEL)].map(([, key = "", text = ""]) => [key, text]);
  return { name: match[1] ?? "", labels: Object.fromEntries(labels), value };
}
