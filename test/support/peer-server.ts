import type { Socket } from "node:net";
import { createHttpApp } from "../../src/adapters/http/app.ts";
import type { PeerReceiver } from "../../src/adapters/http/exchange/options.ts";
import { FencepostError } from "../../src/domain/errors.ts";
import type { Act, PeerNode, Receive } from "../contracts/peers.contract.ts";
import { httpOptions } from "./http-app.ts";
import type { PeerRows } from "./peer-rows.ts";

/**
 * Starts a real server with the routes for other nodes, and registers it in these rows. The test handles the requests
 * that arrive.
 */
export async function startPeerServer(
  rows: PeerRows,
  receive: Receive,
  act: Act = async () => new FencepostError("UNAVAILABLE", "this node takes no actions"),
  kill: PeerReceiver["kill"] = async () => undefined,
): Promise<PeerNode> {
  const peers = rows.peers();
  const admit: PeerReceiver["admit"] = (...request) => peers.gate.admit(...request);
  const sockets = new Set<Socket>();
  let losing = false;
  const create: Receive = async (creates, repeat) => {
    const results = await receive(creates, repeat);
    if (losing) for (const socket of sockets) socket.destroy();
    losing = false;
    return results;
  };
  const { app } = createHttpApp(httpOptions({}, { apiKeys: [], peer: { admit, create, act, kill } }));
  app.server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  rows.register(peers, url);
  return {
    url,
    loseNextReply: () => {
      losing = true;
    },
    stop: async () => {
      app.server.closeAllConnections();
      await app.close();
      await peers.close();
    },
  };
}
