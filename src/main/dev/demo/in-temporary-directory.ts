import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listenForStop } from "../../stop-signals.ts";
import type { ClusterPlan } from "./embedded-cluster.ts";

/** Runs `work` in a temporary directory, and removes everything afterwards, also after Ctrl-C. */
export async function inTemporaryDirectory<T>(work: (place: Omit<ClusterPlan, "nodes">) => Promise<T>): Promise<T> {
  const stop = listenForStop();
  const interrupted = stop.received.then(() => Promise.reject(new Error("interrupted; nothing of it is left running")));
  const directory = await mkdtemp(join(tmpdir(), "fencepost-demo-"));
  const undo: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })];
  try {
    return await Promise.race([work({ directory, undo, signal: stop.signal }), interrupted]);
  } finally {
    for (const step of undo) await step().catch(() => undefined);
    stop.dispose();
  }
}
