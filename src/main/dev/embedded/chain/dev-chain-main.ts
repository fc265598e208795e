/** Entry of the embedded chain's process (child.ts). Its argument is the chain's options. */
import { type ChainOptions, startEmbeddedChain } from "../start-chain.ts";

const chain = await startEmbeddedChain(JSON.parse(process.argv[2] ?? "{}") as ChainOptions, (ms, callback) => {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
});
process.once("SIGTERM", () => void chain.stop().finally(() => process.exit(0)));
process.stdout.write(`${JSON.stringify(chain)}\n`);
