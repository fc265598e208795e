import { systemClock } from "../../src/adapters/system/clock.ts";
import { peersContract } from "../contracts/peers.contract.ts";
import { MemoryNetwork } from "./memory-peers.ts";

peersContract("memory", async () => {
  const network = new MemoryNetwork(systemClock);
  let nodes = 0;
  return {
    peers: network.connect(),
    startNode: async (receive, act, kill) => {
      const url = `http://node-${++nodes}`;
      network.join(url, receive, act, kill);
      return {
        url,
        loseNextReply: () => network.inject("lostReply"),
        stop: async () => network.hangUp(url),
      };
    },
    close: async () => undefined,
  };
});
