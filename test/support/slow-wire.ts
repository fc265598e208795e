import type { World, WorldNode } from "./world.ts";

/**
 * From now on this node's endpoint takes no batches and is slow: one send after the other, each begun `everyMs` after the
 * one before. `hold` keeps the answer to a send that was begun. Returns how to end it.
 */
export function slowWire(
  { clock }: World,
  { rpc }: WorldNode,
  everyMs: number,
  hold: () => Promise<void> = () => Promise.resolve(),
): () => void {
  const submit = rpc.submit.bind(rpc);
  rpc.submit = async (sends) => {
    const results = [];
    for (const send of sends) {
      await clock.sleep(everyMs);
      results.push(...(await submit([send])));
      await hold();
    }
    return results;
  };
  return () => {
    rpc.submit = submit;
  };
}
