/** Entry of a test's chain process (chain-process.ts). It ends with the process that started it. */
import { messageOf } from "../../domain/text/thrown.ts";
import { type ChainOptions, startEmbeddedChain } from "../dev/embedded/start-chain.ts";
import { BlockMaker } from "./block-maker.ts";
import type { ChainAnswer, ChainCommand } from "./chain-process.ts";

// The channel closes with the parent, also if that was killed.
process.once("disconnect", () => process.exit(0));

const { blockTimeMs = null, ...options } = JSON.parse(process.argv[2] ?? "{}") as ChainOptions;

try {
  const chain = await startEmbeddedChain(options);
  const blocks = new BlockMaker(chain, blockTimeMs);
  process.on("message", (command) => void carryOut(blocks, command as ChainCommand).then(reply));
  reply({ ready: { url: chain.url, chainId: chain.chainId, accounts: chain.accounts } });
} catch (error) {
  reply({ failed: messageOf(error) });
}

async function carryOut(blocks: BlockMaker, { id, command, value }: ChainCommand): Promise<ChainAnswer> {
  try {
    if (command === "mine" || command === "reorg") await blocks[command](Number(value));
    else if (command === "setBaseFee") await blocks.setBaseFee(value === null ? null : String(value));
    else await blocks[command]();
    return { id };
  } catch (error) {
    return { id, error: messageOf(error) };
  }
}

function reply(answer: ChainAnswer): void {
  process.send?.(answer);
}
