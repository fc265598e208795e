import { systemClock } from "../../../src/adapters/system/clock.ts";
import { type PeerNode, peersContract } from "../../contracts/peers.contract.ts";
import { PeerRows } from "../../support/peer-rows.ts";
import { startPeerServer } from "../../support/peer-server.ts";

peersContract("HTTP", async () => {
  const rows = new PeerRows();
  const peers = rows.peers({ clock: systemClock });
  rows.register(peers, "http://sender");
  const nodes: PeerNode[] = [];
  return {
    peers,
    startNode: async (receive, act, kill) => {
      const node = await startPeerServer(rows, receive, act, async (request) => kill?.(request));
      nodes.push(node);
      peers.know(rows.rows);
      return node;
    },
    close: async () => {
      await peers.close();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
});
