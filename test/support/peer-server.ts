import type { Socket } from "node:net";
import { createHttpApp } from "../../src/adapters/http/app.ts";
import { FencepostError } from "../../src/domain/errors.ts";
import type { Act, PeerNode, Receive } from "../contracts/peers.contract.ts";
import { httpOptions } from "./http-app.ts";

export const CLUSTER_SECRET = "c1u5t3r-".repeat(12);

/** A real server with the route for other nodes, behind which the test stands. */
export async function startPeerServer(
  receive: Receive,
  act: Act = async () => new FencepostError("UNAVAILABLE", "this node takes no actions"),
  secret: string | (() => Promise<string>) = CLUSTER_SECRET,
): Promise<PeerNode> {
  const sockets = new Set<Socket>();
  let losing = false;
  const create: Receive = async (creates, repeat) => {
    const fates = await receive(creates, repeat);
    if (losing) for (const socket of sockets) socket.destroy();
    losing = false;
    return fates;
  };
  const { app } = createHttpApp(httpOptions({}, { apiKeys: [], peer: { secret, create, act } }));
  app.server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url,
    loseNextReply: () => {
      losing = true;
    },
    stop: async () => {
      app.server.closeAllConnections();
      await app.close();
    },
  };
}
