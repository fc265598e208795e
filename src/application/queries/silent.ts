/** What a status page can do without: null where the chain does not answer, or there is no chain to ask. */
export async function silent<T>(value: Promise<T> | undefined): Promise<T | null> {
  try {
    return (await value) ?? null;
  } catch {
    return null;
  }
}
