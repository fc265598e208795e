/** Parses pages whose tables name tests in the form `test/a.test.ts`: "one", "another"; `test/b.test.ts`: "a third" */

export interface NamedTest {
  readonly file: string;
  readonly title: string;
}

export interface PageRow {
  /** The second-level heading above the table row. */
  readonly section: string;
  readonly cells: readonly string[];
}

const HEADER = /^\| (?:attack|mistake|asset) \|/;

export function rowsOf(page: string): readonly PageRow[] {
  let section = "";
  return page.split("\n").flatMap((line): readonly PageRow[] => {
    section = /^## (.+)$/.exec(line)?.[1] ?? section;
    if (!line.startsWith("| ") || line.startsWith("| ---") || HEADER.test(line)) return [];
    return [{ section, cells: line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")) }];
  });
}

export function testsIn(cell: string): readonly NamedTest[] {
  return cell.split("`test/").flatMap((part, index) => {
    if (index === 0) return [];
    const [file = "", titles = ""] = part.split("`: ");
    return [...titles.matchAll(/"([^"]+)"/g)].map(([, title = ""]) => ({ file: `test/${file}`, title }));
  });
}
