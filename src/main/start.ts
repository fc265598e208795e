import type { Logger } from "../adapters/system/logger.ts";
import type { ConfigFor } from "./config/config.ts";
import { type Service, startService } from "./service.ts";
import { listenForStop } from "./stop-signals.ts";

/** `fencepost start`: one node on what the configuration names, until it is asked to stop. */
export async function start(
  config: ConfigFor<"start">,
  logger: Logger,
  ready: (node: { readonly url: string; readonly nodeId: string }) => void,
): Promise<void> {
  const stop = listenForStop();
  try {
    await runUntilStopped(await startService({ config, logger }), stop.received, { logger, ready });
  } finally {
    stop.dispose();
  }
}

export async function runUntilStopped(
  service: Service,
  stopped: Promise<void>,
  { logger, ready }: { readonly logger: Logger; readonly ready: (node: Service) => void },
): Promise<void> {
  ready(service);
  await stopped;
  logger.log("info", { nodeId: service.nodeId }, "draining");
  await service.stop();
  logger.log("info", { nodeId: service.nodeId }, "stopped");
  logger.flush();
}
