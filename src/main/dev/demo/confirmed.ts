import { systemClock } from "../../../adapters/system/clock.ts";
import type { NodeChild } from "./node-child.ts";

/** Time without progress after which the rest counts as lost. */
const GIVE_UP_MS = 60_000;

export async function untilConfirmed(count: number, confirmed: { count(): number }, onLook: () => void): Promise<void> {
  let best = { count: -1, atMs: 0 };
  while (confirmed.count() < count) {
    const nowMs = systemClock.monotonicMs();
    if (confirmed.count() > best.count) best = { count: confirmed.count(), atMs: nowMs };
    if (nowMs - best.atMs > GIVE_UP_MS) return;
    await systemClock.sleep(100);
    onLook();
  }
}

/** Follows the completion feed of any node that answers. */
export function followConfirmed(nodes: readonly NodeChild[]): { count(): number; stop(): void } {
  const confirmed = new Set<string>();
  const stopped = new AbortController();
  let after = 0;
  const follow = async (): Promise<void> => {
    for (let turn = 0; !stopped.signal.aborted; turn++) {
      const node = nodes[turn % nodes.length] as NodeChild;
      try {
        const page = await node.client.completionsPage(
          { after, limit: 1_000, wait: 1 },
          { signal: AbortSignal.timeout(3_000) },
        );
        for (const { txId, state } of page.items) if (state === "CONFIRMED") confirmed.add(txId);
        after = page.next;
      } catch {
        await systemClock.sleep(100);
      }
    }
  };
  void follow();
  return { count: () => confirmed.size, stop: () => stopped.abort() };
}
