/** The terminal of `dev`: prompts and key presses. */
import { createInterface } from "node:readline/promises";
import { systemClock } from "../../adapters/system/clock.ts";
import { DevKeys, type KeyActions } from "./keys.ts";

export interface DevTerminal {
  readonly ask: (question: string) => Promise<string>;
  /** Reads key presses until the returned function is called. */
  onKey(pressed: (key: string) => void): () => void;
}

export interface DevSession extends Omit<KeyActions, "send"> {
  readonly node: { readonly url: string; readonly signers: readonly string[] };
}

const REMEMBER_EVERY_MS = 1_000;
const CTRL_C = "\u0003";

/** Null: standard input or standard error is no terminal. */
export function openTerminal(): DevTerminal | null {
  const { stdin, stderr } = process;
  if (stdin.isTTY !== true || stderr.isTTY !== true) return null;
  return {
    ask: async (question) => {
      const lines = createInterface({ input: stdin, output: stderr });
      try {
        return await lines.question(question);
      } finally {
        lines.close();
      }
    },
    onKey: (pressed) => {
      const listen = (bytes: Buffer): void => pressed(bytes.toString());
      stdin.setRawMode(true).resume().on("data", listen);
      return () => void stdin.off("data", listen).setRawMode(false).pause();
    },
  };
}

/** Handles keys until the returned function is called. */
export function handleKeys(terminal: DevTerminal, { node, ...actions }: DevSession): () => Promise<void> {
  const keys = new DevKeys({ ...actions, send: () => sendTransfer(node) });
  const stop = new AbortController();
  const silent = terminal.onKey((key) => {
    // In raw mode the terminal sends no SIGINT for Ctrl-C.
    if (key === CTRL_C || key === "q") process.kill(process.pid, "SIGINT");
    else void keys.press(key);
  });
  const snapshots = takeSnapshots(keys, stop.signal);
  actions.say(keys.help);
  return async () => {
    silent();
    stop.abort();
    await snapshots;
  };
}

async function takeSnapshots(keys: DevKeys, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await keys.remember().catch(() => undefined);
    await systemClock.sleep(REMEMBER_EVERY_MS, signal).catch(() => undefined);
  }
}

async function sendTransfer({ url, signers: [signer, to = signer] }: DevSession["node"]): Promise<string> {
  const response = await fetch(`${url}/api/v1/tx`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ signer, payload: { to, value: "1" } }),
  });
  const { txId, nonce, detail } = (await response.json()) as { txId?: string; nonce?: number; detail?: string };
  return txId === undefined ? `not sent: ${detail}` : `sent ${txId} with nonce ${nonce}`;
}
