import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type DashboardOptions, dashboardFiles } from "../../../src/adapters/dashboard/files.ts";
import { PAGE_HEADERS } from "../../../src/adapters/http/routes/operations.ts";

/** A request as the scene receives it: path under /api/v1 and query. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Returns a scene's response; null for 404. While a returned promise is pending, the response stays open. */
export type Scene = (asked: Asked) => unknown;

/** Thrown by a scene to send a problem document as a node would. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, detail: string) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export interface StagedNode {
  readonly url: string;
  readonly asked: Asked[];
  close(): Promise<void>;
}

/** Starts a server that delivers the page with its usual headers and answers its requests from a scene. */
export async function startStagedNode(scene: Scene, options: DashboardOptions = {}): Promise<StagedNode> {
  const files = dashboardFiles(options);
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://staged");
    const file = files.get(url.pathname);
    if (file !== undefined) {
      response.writeHead(200, { ...PAGE_HEADERS, "content-type": file.contentType }).end(file.body);
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "GET", headers } = request;
      const text = Buffer.concat(chunks).toString();
      const path = url.pathname.replace(/^\/api\/v1/, "");
      const each = { method, path, query: url.searchParams, body: text === "" ? null : JSON.parse(text), headers };
      asked.push(each);
      void answer(scene, each, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, asked, close: () => closed(server) };
}

async function answer(scene: Scene, asked: Asked, response: ServerResponse): Promise<void> {
  const send = (status: number, body: unknown) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  try {
    const found = await scene(asked);
    if (found === null || found === undefined) send(404, { code: "NOT_FOUND", detail: "there is no such thing" });
    else send(200, found);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    send(error.status, { status: error.status, code: error.code, detail: error.message });
  }
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
