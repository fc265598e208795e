import autocannon from "autocannon";

export interface Target {
  readonly url: string;
  readonly path: string;
  readonly connections: number;
  readonly body: () => string;
}

/** Requests per second that a usual HTTP client gets answered, as fast as the answers come. Every one must be a success. */
export async function hammer({ url, path, connections, body }: Target, turnMs: number): Promise<number> {
  const result = await autocannon({
    url,
    connections,
    duration: turnMs / 1_000,
    requests: [
      {
        method: "POST",
        path,
        headers: { "content-type": "application/json" },
        setupRequest: (request) => Object.assign(request, { body: body() }),
      },
    ],
  });
  const failed = result.errors + result.timeouts + result.non2xx;
  if (failed > 0) throw new Error(`${failed} of ${result.requests.total} requests to ${path} failed`);
  return result.requests.total / result.duration;
}
