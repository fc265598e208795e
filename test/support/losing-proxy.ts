import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy in front of a node that forwards requests and can lose the node's responses. */
export class LosingProxy {
  readonly url: string;
  private readonly server: Server;
  private toLose = 0;
  /** Responses of the node that its caller never received. */
  readonly lost: { readonly path: string; readonly status: number }[] = [];

  private constructor(server: Server) {
    this.server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(nodeUrl: string): Promise<LosingProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const proxy = new LosingProxy(server);
    server.on("request", async (request, response) => {
      const path = request.url ?? "/";
      const body = await new Response(request as never).text();
      const headers = { "content-type": "application/json" };
      const method = request.method ?? "GET";
      const answer = await fetch(nodeUrl + path, method === "GET" ? {} : { method, headers, body });
      const text = await answer.text();
      if (method !== "GET" && proxy.toLose > 0) {
        proxy.toLose--;
        proxy.lost.push({ path, status: answer.status });
        request.socket.destroy();
        return;
      }
      response.writeHead(answer.status, { "content-type": "application/json" }).end(text);
    });
    return proxy;
  }

  /** Loses the next `answers` responses; the node still performs the requests. */
  lose(answers: number): void {
    this.toLose = answers;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
