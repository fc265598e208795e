/** Converts the arguments of a contract call from shell text to the JSON that a node encodes. */
import { InvalidArgumentError } from "commander";
import { wei } from "./amounts.ts";

/**
 * Parameter types of a function signature: `transfer(address to, uint256 amount)` → `["address", "uint256"]`. Null for
 * a bare name or an invalid signature.
 */
export function parameterTypes(signature: string): readonly string[] | null {
  const from = signature.indexOf("(");
  const to = closingAt(signature, from);
  if (from < 0 || to < 0) return null;
  const inside = signature.slice(from + 1, to).trim();
  return inside === "" ? [] : splitAtTop(inside).map(typeOf);
}

/**
 * Returns the parameter types of the ABI's function with this name and argument count, or of its constructor if the
 * name is null. Null if no entry or several entries match.
 */
export function describedTypes(abi: readonly unknown[], name: string | null, count: number): readonly string[] | null {
  const all = abi.map((entry) => (typeof entry === "string" ? ofText(entry, name) : ofObject(entry, name)));
  const [types, ...others] = all.filter((each) => each?.length === count);
  return others.length === 0 ? (types ?? null) : null;
}

/** Parameter types of a human-readable ABI entry such as `function transfer(address,uint256)`. */
function ofText(entry: string, name: string | null) {
  const head = entry.slice(0, Math.max(0, entry.indexOf("("))).trim();
  return head.replace(/^function\s+/, "") === (name ?? "constructor") ? parameterTypes(entry) : null;
}

function ofObject(entry: unknown, name: string | null): readonly string[] | null {
  const described = Object(entry) as { readonly type?: unknown; readonly name?: unknown; readonly inputs?: unknown };
  const isMeant =
    name === null ? described.type === "constructor" : described.type === "function" && described.name === name;
  if (!isMeant || !Array.isArray(described.inputs)) return null;
  return described.inputs.map((input: unknown) => String((Object(input) as { readonly type?: unknown }).type));
}

/**
 * Removes the name of an ABI parameter: `(uint256 a, bool b)[] orders` → `(uint256 a, bool b)[]`; `uint256 amount` →
 * `uint256`.
 */
function typeOf(parameter: string) {
  const text = parameter.trim();
  const end = /^(tuple\s*)?\(/.test(text) ? closingAt(text, text.indexOf("(")) + 1 : 0;
  return text.slice(0, end) + (/^\S*/.exec(text.slice(end))?.[0] ?? "");
}

function closingAt(text: string, open: number) {
  let depth = 0;
  for (let at = open; at >= 0 && at < text.length; at++) {
    if (text[at] === "(") depth++;
    if (text[at] === ")" && --depth === 0) return at;
  }
  return -1;
}

function splitAtTop(text: string): readonly string[] {
  const parts = [""];
  let depth = 0;
  for (const letter of text) {
    if (letter === "(") depth++;
    if (letter === ")") depth--;
    if (letter === "," && depth === 0) parts.push("");
    else parts.push(`${parts.pop() ?? ""}${letter}`);
  }
  return parts;
}

/** Converts arguments typed in a shell. If `types` is null, the types are unknown and are guessed from each text. */
export function toArguments(texts: readonly string[], types: readonly string[] | null): readonly unknown[] {
  if (types !== null && types.length !== texts.length) {
    const takes = `takes ${types.length} arguments (${types.join(", ")})`;
    throw new InvalidArgumentError(
      `the function ${takes}, but ${texts.length} ${texts.length === 1 ? "is" : "are"} given`,
    );
  }
  return texts.map((text, at) => toArgument(text, types?.[at] ?? null));
}

function toArgument(text: string, type: string | null): unknown {
  if (type === null) return /^[[{]/.test(text) ? list(text) : (TRUTH.get(text) ?? text);
  if (/\]$|^\(|^tuple/.test(type)) return list(text);
  if (type === "bool") return TRUTH.get(text) ?? text;
  // Convert an integer only if it is typed with a unit (`1ether`). A bare number stays unchanged, because tokens have
  // their own decimals.
  return /^u?int\d*$/.test(type) && /^[\d.]+\s*[a-z]+$/i.test(text) && !text.startsWith("0x") ? wei(text) : text;
}

const TRUTH: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);

/** Parses JSON and keeps numbers as strings: JavaScript rounds numbers above 2^53. */
function list(text: string): unknown {
  const exact = text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
  try {
    return JSON.parse(exact);
  } catch {
    throw new InvalidArgumentError(
      `A list or a tuple must be JSON, such as '["0x…", "1"]'; this argument is not valid JSON: ${text}`,
    );
  }
}
