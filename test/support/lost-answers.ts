/** A `fetch` for the SDK that carries out the first sends but loses their responses. */
export function loseAnswers(times: number) {
  const seen = { lost: 0 };
  const losing: typeof globalThis.fetch = async (input, init) => {
    const response = await globalThis.fetch(input, init);
    if (init?.method !== "POST" || seen.lost >= times) return response;
    await response.arrayBuffer();
    seen.lost++;
    throw new TypeError("fetch failed");
  };
  return Object.assign(seen, { fetch: losing });
}
