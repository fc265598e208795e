/** The first SIGINT or SIGTERM asks to stop; a second one no longer asks. */
export interface StopSignals {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal;
  /** Resolves with the first signal. */
  readonly received: Promise<void>;
  /** Gives the signals back to Node. */
  dispose(): void;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export function listenForStop(): StopSignals {
  const controller = new AbortController();
  const received = new Promise<void>((resolve) => controller.signal.addEventListener("abort", () => resolve()));
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(name === "SIGINT" ? 130 : 143);
    controller.abort(new Error(`stopped by ${name}`));
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  const dispose = (): void => {
    for (const name of SIGNALS) process.off(name, onSignal);
  };
  return { signal: controller.signal, received, dispose };
}
