const COLOURS: Readonly<Record<string, number>> = { trace: 90, debug: 90, info: 32, warn: 33, error: 31, fatal: 35 };
const DIM = 2;
const LEVEL_WIDTH = 5;
/** Matches a long hash. It is shortened in readable lines; the JSON format has it in full. */
const LONG_HEX = /^0x[0-9a-f]{24,}$/i;

/** Formats a JSON log line as `12:00:03 info  message  key=value …` for a terminal. */
export function readableLine(json: string, colours: boolean): string {
  const { time, level, msg, ...fields } = parsed(json);
  const name = String(level);
  const coloured = colours ? inColour : (text: string) => text;
  const dim = (text: string) => coloured(text, DIM);
  const clockTime = String(time).slice(11, 19);
  const pairs = Object.entries(fields)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => dim(`${key}=`) + shorten(value));
  return `${[dim(clockTime), coloured(name.padEnd(LEVEL_WIDTH), COLOURS[name] ?? 0), oneLine(String(msg)), ...pairs].join(" ")}\n`;
}

function shorten(value: unknown) {
  if (typeof value !== "string") return JSON.stringify(value);
  return LONG_HEX.test(value) ? `${value.slice(0, 8)}…${value.slice(-4)}` : oneLine(value);
}

/**
 * Removes control characters: foreign text, such as a node's response, must not move the cursor or forge a log line.
 */
function oneLine(text: string) {
  return text.replace(/\p{Cc}+/gu, " ");
}

function inColour(text: string, code: number) {
  return `\u001b[${code}m${text}\u001b[0m`;
}

/** Parses a JSON log line. Masking may break an escape sequence and so the JSON; then the line is shown unchanged. */
function parsed(json: string) {
  try {
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return { time: "", level: "warn", msg: json };
  }
}
