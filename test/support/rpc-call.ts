/** Calls JSON-RPC without Fencepost's adapter, so that a test does not compare the adapter with itself. */
export async function rpcCall<T>(url: string, method: string, params: readonly unknown[] = []): Promise<T> {
  const [result] = await rpcCalls<T>(url, [[method, params]]);
  return result as T;
}

export async function rpcCalls<T>(
  url: string,
  calls: readonly (readonly [method: string, params: readonly unknown[]])[],
): Promise<readonly T[]> {
  const body = calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params }));
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answers = (await response.json()) as { id: number; result?: T; error?: { message: string } }[];
  return answers
    .toSorted((a, b) => a.id - b.id)
    .map(({ result, error }) => {
      if (error !== undefined) throw new Error(error.message);
      return result as T;
    });
}
