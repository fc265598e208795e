/** Requests that wait for a response, by id. */
export function pendingRequests<A>() {
  const waiting = new Map<number, { resolve(answer: A): void; reject(error: Error): void }>();
  let nextId = 0;
  /** Removes and returns a pending request. */
  const take = (id: number) => {
    const request = waiting.get(id);
    waiting.delete(id);
    return request;
  };
  return {
    take,
    size: () => waiting.size,
    add: (send: (id: number) => void) =>
      new Promise<A>((resolve, reject) => {
        const id = nextId++;
        waiting.set(id, { resolve, reject });
        send(id);
      }),
    /** True if the request is still pending. */
    has: (id: number) => waiting.has(id),
    abandon: (error: Error) => {
      for (const id of waiting.keys()) take(id)?.reject(error);
    },
  };
}
