import { SimulatedChain } from "../../test/doubles/simulated-chain/core.ts";
import { ROOMY_POOL } from "../../test/doubles/simulated-chain/pool.ts";
import { senderIsRecipient } from "../../test/doubles/simulated-chain/sender.ts";
import { startSimulatedServer } from "../../test/doubles/simulated-chain/server.ts";
import type { ChainQuestion, ChainReport } from "./chain-messages.ts";

/** A fast chain in a process of its own: no signature is verified, the pool takes whatever comes. */
const blockTimeMs = Number(process.argv[2]);
const chain = new SimulatedChain({ pool: ROOMY_POOL, recoverSender: senderIsRecipient, defaultBalance: 10n ** 30n });
const server = await startSimulatedServer({ chain, blockTimeMs });

/** When each (sender, nonce) first arrived, while somebody wants to know. */
let arrivals: Record<string, number> | null = null;
chain.subscribe((event) => {
  if (event.type !== "arrival" || arrivals === null) return;
  arrivals[`${event.entry.from}:${event.entry.nonce}`] ??= performance.timeOrigin + performance.now();
});

process.on("message", (question: ChainQuestion) => {
  const report: ChainReport = { requests: server.requests(), arrivals: arrivals ?? {} };
  arrivals = question.watchArrivals ? {} : null;
  process.send?.(report);
});
process.on("disconnect", () => process.exit(0));
process.send?.({ url: server.url });
