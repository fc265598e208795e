import { systemClock } from "../../../adapters/system/clock.ts";
import type { CreatedTransaction } from "../../../contract/schemas/create.ts";
import type { NodeChild } from "./node-child.ts";

export interface LoadPlan {
  readonly transactions: number;
  /** Number of the first transfer. */
  readonly from?: number;
  readonly signers: readonly string[];
  readonly recipient: string;
  readonly nodes: readonly NodeChild[];
}

export interface Accepted extends CreatedTransaction {
  readonly atMs: number;
}

const CALLERS = 16;
const PATIENCE_MS = 5_000;
const AGAIN_MS = 100;

/** Sends every transfer exactly once: after a failure, the same request id again, to the next node. */
export async function sendAll(plan: LoadPlan, onAccepted: (accepted: Accepted) => void): Promise<void> {
  const { from = 0 } = plan;
  let next = from;
  const caller = async (): Promise<void> => {
    for (let number = next++; number < from + plan.transactions; number = next++) {
      onAccepted({ ...(await sendUntilAccepted(plan, number)), atMs: systemClock.monotonicMs() });
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

async function sendUntilAccepted(plan: LoadPlan, number: number): Promise<CreatedTransaction> {
  const signer = plan.signers[number % plan.signers.length] as string;
  const request = { signer, requestId: `demo-${number}`, payload: { to: plan.recipient, value: "1" } };
  for (let attempt = number; ; attempt++) {
    const node = plan.nodes[attempt % plan.nodes.length] as NodeChild;
    try {
      return await node.client.send(request, { signal: AbortSignal.timeout(PATIENCE_MS) });
    } catch {
      await systemClock.sleep(AGAIN_MS);
    }
  }
}
