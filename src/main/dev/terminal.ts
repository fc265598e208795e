/** The terminal that `dev` runs on: questions are asked there, and keys are heard. */
import { createInterface } from "node:readline/promises";
import { systemClock } from "../../adapters/system/clock.ts";
import { type PlayGround, PlayKeys } from "./keys.ts";

export interface DevTerminal {
  readonly ask: (question: string) => Promise<string>;
  /** Hears keys until what it returns is called. */
  hear(pressed: (key: string) => void): () => void;
}

export interface Played extends Omit<PlayGround, "send"> {
  readonly node: { readonly url: string; readonly signers: readonly string[] };
}

const REMEMBER_EVERY_MS = 1_000;
const CTRL_C = "\u0003";

/** Null: standard input or error is no terminal. */
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
    hear: (pressed) => {
      const listen = (bytes: Buffer): void => pressed(bytes.toString());
      stdin.setRawMode(true).resume().on("data", listen);
      return () => void stdin.off("data", listen).setRawMode(false).pause();
    },
  };
}

/** Until what it returns is called. */
export function play(terminal: DevTerminal, { node, ...ground }: Played): () => Promise<void> {
  const keys = new PlayKeys({ ...ground, send: () => sendTransfer(node) });
  const stop = new AbortController();
  const silent = terminal.hear((key) => {
    // A terminal that hands over every key no longer makes a signal of this one.
    if (key === CTRL_C || key === "q") process.kill(process.pid, "SIGINT");
    else void keys.press(key);
  });
  const remembering = rememberNowAndThen(keys, stop.signal);
  ground.say(keys.help);
  return async () => {
    silent();
    stop.abort();
    await remembering;
  };
}

async function rememberNowAndThen(keys: PlayKeys, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await keys.remember().catch(() => undefined);
    await systemClock.sleep(REMEMBER_EVERY_MS, signal).catch(() => undefined);
  }
}

async function sendTransfer({ url, signers: [signer, to = signer] }: Played["node"]): Promise<string> {
  const response = await fetch(`${url}/api/v1/tx`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ signer, payload: { to, value: "1" } }),
  });
  const { txId, nonce, detail } = (await response.json()) as { txId?: string; nonce?: number; detail?: string };
  return txId === undefined ? `not sent: ${detail}` : `sent ${txId} with nonce ${nonce}`;
}
