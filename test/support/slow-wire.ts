import type { World, WorldNode } from "./world.ts";

/**
 * Makes this node's endpoint slow and without batches: one send after the other, each `everyMs` after the previous one.
 * `hold` delays the response to a send. Returns a function that ends this.
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
