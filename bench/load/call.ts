import { Agent, request } from "node:http";
import type { Target } from "./hammer.ts";

/**
 * Requests per second that a service gets answered: through Node's own HTTP client, which the usual ones stand on, over
 * connections that are kept, every answer read and parsed. Every one must be a success.
 */
export async function call({ url, path, connections, body }: Target, turnMs: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const beginMs = performance.now();
  let answered = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() - beginMs < turnMs) {
      await post(new URL(path, url), agent, body());
      answered++;
    }
  };
  try {
    await Promise.all(Array.from({ length: connections }, caller));
    return (1_000 * answered) / (performance.now() - beginMs);
  } finally {
    agent.destroy();
  }
}

function post(url: URL, agent: Agent, body: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const sent = request(url, { method: "POST", agent, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (part: string) => {
        text += part;
      });
      answer.on("end", () => {
        const { statusCode = 0 } = answer;
        if (statusCode >= 200 && statusCode < 300) resolve(JSON.parse(text));
        else reject(new Error(`${url.pathname} answered ${statusCode}: ${text.slice(0, 300)}`));
      });
      answer.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
