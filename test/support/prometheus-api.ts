import { expect } from "vitest";

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** Sends a query to a real Prometheus through its HTTP API. */
export async function askPrometheus(url: string, path: string): Promise<unknown> {
  const answer = await fetch(`${url}/api/v1/${path}`);
  const { status, data, error } = (await answer.json()) as { status: string; data: unknown; error?: string };
  expect(status, `${path}: ${error}`).toBe("success");
  return data;
}

export async function queryPrometheus(url: string, expr: string): Promise<readonly Sample[]> {
  const { result } = (await askPrometheus(url, `query?query=${encodeURIComponent(expr)}`)) as {
    result: readonly Sample[];
  };
  return result;
}
