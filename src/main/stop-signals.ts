export type StopSignals = ReturnType<typeof listenForStop>;

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * The first SIGINT or SIGTERM aborts `signal` and resolves `received`. A second one exits at once. `dispose` removes
 * the listeners.
 */
export function listenForStop(): { readonly signal: AbortSignal; readonly received: Promise<void>; dispose(): void } {
  const controller = new AbortController();
  const received = new Promise<void>((resolve) => controller.signal.addEventListener("abort", () => resolve()));
  const onSignal = (name: NodeJS.Signals) => {
    if (controller.signal.aborted) process.exit(name === "SIGINT" ? 130 : 143);
    controller.abort(new Error(`stopped by ${name}`));
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  const dispose = () => {
    for (const name of SIGNALS) process.off(name, onSignal);
  };
  return { signal: controller.signal, received, dispose };
}
