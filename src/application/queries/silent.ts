/** Optional facts of a status page: null if the chain does not answer, or the fact does not exist. */
export async function silent<T>(value: Promise<T> | undefined): Promise<T | null> {
  try {
    return (await value) ?? null;
  } catch {
    return null;
  }
}
