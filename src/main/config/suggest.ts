/** The known name that is probably meant, or null where none is near. */
export function nearest(name: string, known: Iterable<string>): string | null {
  const wanted = normalised(name);
  let best: { readonly name: string; readonly distance: number } | null = null;
  for (const candidate of known) {
    const distance = editDistance(wanted, normalised(candidate));
    if (best === null || distance < best.distance) best = { name: candidate, distance };
  }
  // A third of the letters may be wrong; beyond that a guess is noise.
  return best !== null && best.distance <= Math.max(2, Math.floor(wanted.length / 3)) ? best.name : null;
}

/** The prefix is no evidence: every variable has it. Casing and separators are how the two spellings differ. */
function normalised(name: string): string {
  return name
    .replace(/^FENCEPOST_/i, "")
    .replace(/[_-]/g, "")
    .toLowerCase();
}

/** Levenshtein, one row at a time. Long input is cut: nothing known is that long. */
function editDistance(a: string, b: string): number {
  const wanted = a.slice(0, 64);
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...wanted].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return (row[b.length] ?? 0) + (a.length - wanted.length);
}
