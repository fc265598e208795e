import type { World, WorldNode } from "./world.ts";

/**
 * Makes this node's endpoint slow: it accepts no batches, and each send starts `everyMs` after the response to the
 * previous send. A test can delay these responses with `hold`. Returns a function that restores the endpoint.
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
