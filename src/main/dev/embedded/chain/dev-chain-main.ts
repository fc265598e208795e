/** The embedded chain as a process of its own, told by its one argument what to be: see child.ts. */
import { type ChainOptions, startEmbeddedChain } from "../start-chain.ts";

const chain = await startEmbeddedChain(JSON.parse(process.argv[2] ?? "{}") as ChainOptions);
process.once("SIGTERM", () => void chain.stop().finally(() => process.exit(0)));
