/**
 * Makes mutants of an SQL statement, each without one of its conditions. The statement's test runs its cases against
 * each mutant. If a mutant passes all cases, no case tests the removed condition.
 *
 * The removed condition stays in the text but has no effect, so that parameters keep their types.
 */
export interface Mutant {
  readonly without: string;
  readonly sql: string;
}

interface Piece {
  readonly from: number;
  readonly to: number;
  readonly isAlternative: boolean;
}

interface Frame {
  from: number;
  /** The SQL keyword or bracket before this part of the statement. */
  after: string;
}

/**
 * Treats `IS NOT DISTINCT FROM` and `ON CONFLICT` as one token each, because they contain words that would otherwise
 * end or begin a condition.
 */
const TOKEN =
  /IS (?:NOT )?DISTINCT FROM|ON CONFLICT|'[^']*'|[(),]|\b(?:SELECT|FROM|WHERE|ON|AND|OR|WHEN|THEN|ELSE|END|SET|ORDER|RETURNING|FOR|LIMIT|OFFSET|JOIN|LEFT|CROSS|UNION|AS)\b/g;
const BEGINS = new Set(["WHERE", "ON", "AND", "OR", "WHEN"]);
const PASSES = /^(?:IS |')/;

/**
 * Matches a condition with a list of keys, which only helps the planner to find rows by key. It is not removed: another
 * equality condition already decides, so the mutant would behave like the original.
 */
const HINT = /= ANY \(/;

export function mutantsOf(sql: string): readonly Mutant[] {
  const conditions = conditionsOf(sql).filter(({ from, to }) => !HINT.test(sql.slice(from, to)));
  const required = [...sql.matchAll(/fencepost\.require_\w+\(/g)].map(({ index }) => ({
    from: index,
    to: closing(sql, sql.indexOf("(", index)) + 1,
    isAlternative: false,
  }));
  const locks = [...sql.matchAll(/FOR NO KEY UPDATE OF \w+/g)].map(({ index, 0: text }) => ({
    without: text,
    sql: sql.slice(0, index) + sql.slice(index + text.length),
  }));
  const mutants = [...[...conditions, ...required].map((piece) => without(sql, piece)), ...locks];
  return [...new Map(mutants.map((mutant) => [mutant.sql.replace(/\s+/g, " "), mutant])).values()];
}

function without(sql: string, { from, to, isAlternative }: Piece): Mutant {
  const text = sql.slice(from, to).trim();
  const nothing = isAlternative ? `((${text}) IS NULL AND false)` : `((${text}) IS NULL OR true)`;
  return { without: text.replace(/\s+/g, " "), sql: `${sql.slice(0, from)} ${nothing} ${sql.slice(to)}` };
}

function conditionsOf(sql: string): readonly Piece[] {
  const pieces: Piece[] = [];
  const frames: Frame[] = [{ from: 0, after: "" }];
  const end = (frame: Frame, to: number, before: string): void => {
    const joined = before === "AND" || before === "OR";
    if (!joined && !BEGINS.has(frame.after)) return;
    pieces.push({ from: frame.from, to, isAlternative: before === "OR" || frame.after === "OR" });
  };
  for (const { 0: token, index } of sql.matchAll(TOKEN)) {
    if (PASSES.test(token)) continue;
    const frame = frames.at(-1) as Frame;
    if (token === "(") frames.push({ from: index + 1, after: "(" });
    else {
      end(frame, index, token);
      if (token === ")") frames.pop();
      else Object.assign(frame, { from: index + token.length, after: token });
    }
  }
  end(frames[0] as Frame, sql.length, "");
  return pieces;
}

function closing(sql: string, opening: number): number {
  let depth = 0;
  for (let at = opening; at < sql.length; at++) {
    if (sql[at] === "(") depth++;
    if (sql[at] === ")" && --depth === 0) return at;
  }
  throw new Error(`nothing closes the bracket at ${opening} of ${sql}`);
}
