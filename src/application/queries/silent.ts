/** Optional facts of a status page: null if the chain does not answer, or there is none. */
export async function silent<T>(value: Promise<T> | undefined): Promise<T | null> {
  try {
    return (await value) ?? null;
  } catch {
    return null;
  }
}
