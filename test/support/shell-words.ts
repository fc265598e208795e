/** Splits a command as a shell does, with quotes; redirections and comments are left out. */
export function shellWords(line: string): readonly string[] {
  const [command = ""] = line.split(/ [<>#] /);
  const words = command.match(/'[^']*'|"[^"]*"|[^\s'"]+/g) ?? [];
  return words.map((word) => (/^['"]/.test(word) ? word.slice(1, -1) : word));
}
