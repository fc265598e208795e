/** The chain of a test as a process of its own: see chain-process.ts. It ends when the process that started it does. */
import { messageOf } from "../dev/embedded/embedded-error.ts";
import { type ChainOptions, startEmbeddedChain } from "../dev/embedded/start-chain.ts";
import { BlockMaker } from "./block-maker.ts";
import type { ChainAnswer, ChainOrder } from "./chain-process.ts";

// The channel closes with its other end, also where that was killed.
process.once("disconnect", () => process.exit(0));

const { blockTimeMs = null, ...options } = JSON.parse(process.argv[2] ?? "{}") as ChainOptions;

try {
  const chain = await startEmbeddedChain(options);
  const blocks = new BlockMaker(chain, blockTimeMs);
  process.on("message", (order) => void carryOut(blocks, order as ChainOrder).then(say));
  say({ ready: { url: chain.url, chainId: chain.chainId, accounts: chain.accounts } });
} catch (error) {
  say({ failed: messageOf(error) });
}

async function carryOut(blocks: BlockMaker, { id, order, value }: ChainOrder): Promise<ChainAnswer> {
  try {
    if (order === "mine" || order === "reorg") await blocks[order](Number(value));
    else if (order === "setBaseFee") await blocks.setBaseFee(value === null ? null : String(value));
    else await blocks[order]();
    return { id };
  } catch (error) {
    return { id, error: messageOf(error) };
  }
}

function say(answer: ChainAnswer): void {
  process.send?.(answer);
}
