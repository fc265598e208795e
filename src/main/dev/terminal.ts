/** The terminal of `dev`: prompts and key presses. */
import { createInterface } from "node:readline/promises";
import { systemClock } from "../../adapters/system/clock.ts";
import { createClient } from "../../client/index.ts";
import { messageOf } from "../../domain/text/thrown.ts";
import { devKeys, type KeyActions } from "./keys.ts";

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
  const keys = devKeys({ ...actions, send: () => sendTransfer(node) });
  const stop = new AbortController();
  const silent = terminal.onKey((key) => {
    // In raw mode the terminal sends no SIGINT for Ctrl-C.
    if (key === CTRL_C || key === "q") process.kill(process.pid, "SIGINT");
    else void keys.press(key);
  });
  const snapshots = takeSnapshots(keys.remember, stop.signal);
  actions.say(keys.help);
  return async () => {
    silent();
    stop.abort();
    await snapshots;
  };
}

async function takeSnapshots(remember: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await remember().catch(() => undefined);
    await systemClock.sleep(REMEMBER_EVERY_MS, signal).catch(() => undefined);
  }
}

async function sendTransfer({ url, signers: [signer = "", to = signer] }: DevSession["node"]): Promise<string> {
  const sending = createClient({ url, repeat: false }).send({ signer, payload: { to, value: "1" } });
  return sending.then(
    ({ txId, nonce }) => `sent ${txId} with nonce ${nonce}`,
    (error: unknown) => `not sent: ${messageOf(error)}`,
  );
}
