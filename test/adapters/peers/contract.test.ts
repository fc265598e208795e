import { createHttpPeers } from "../../../src/adapters/peers/http-peers.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { type PeerNode, peersContract } from "../../contracts/peers.contract.ts";
import { CLUSTER_SECRET, startPeerServer } from "../../support/peer-server.ts";

peersContract("HTTP", async () => {
  const peers = createHttpPeers({ secret: async () => CLUSTER_SECRET, clock: systemClock });
  const nodes: PeerNode[] = [];
  return {
    peers,
    startNode: async (receive, act) => {
      const node = await startPeerServer(receive, act);
      nodes.push(node);
      return node;
    },
    close: async () => {
      await peers.close();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
});
