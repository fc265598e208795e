import { once } from "node:events";
import type { ChainQuestion, ChainReport } from "../processes/chain-messages.ts";
import { type Forked, forkServer } from "./forked.ts";

export interface BenchChain extends Pick<Forked, "url" | "stop"> {
  report(question?: ChainQuestion): Promise<ChainReport>;
}

export async function startChain(blockTimeMs: number): Promise<BenchChain> {
  const { url, child, stop } = await forkServer("chain", [String(blockTimeMs)]);
  return {
    url,
    stop,
    report: async (question = { watchArrivals: false }) => {
      const answered = once(child, "message");
      child.send(question);
      const [report] = (await answered) as [ChainReport];
      return report;
    },
  };
}
