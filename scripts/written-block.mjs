/** Part of a page that a script writes: the words in it are not counted as the book's. */
const beginOf = (script) => `<!-- written by npm run ${script} -->\n`;
const endOf = (script) => `<!-- end of what npm run ${script} writes -->\n`;

/**
 * The page with its written part replaced.
 *
 * @param {string} page
 * @param {string} text
 * @param {string} script name of the script that writes the part
 * @returns {string}
 */
export function withWritten(page, text, script) {
  const [before, rest = ""] = page.split(beginOf(script));
  const [, after] = rest.split(endOf(script));
  if (after === undefined) throw new Error(`the page has no place for what npm run ${script} writes`);
  return `${before}${beginOf(script)}${text}${endOf(script)}${after}`;
}
