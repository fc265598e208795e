/** Asks the person at the terminal. */
import { once } from "node:events";
import { createInterface } from "node:readline/promises";

export type Ask = (question: string) => Promise<string>;

interface Terminal {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/**
 * A function that asks on the terminal; null if standard input or standard error is none. The end of the input (Ctrl-D)
 * is an empty answer.
 */
export function askOnTerminal({ stdin, stderr }: Terminal = process): Ask | null {
  if (stdin.isTTY !== true || stderr.isTTY !== true) return null;
  // After Ctrl-D the cursor is still behind the question.
  const endLine = () => {
    stderr.write("\n");
    return "";
  };
  return async (question) => {
    // The terminal edits the line and turns Ctrl-C into SIGINT: readline's own raw mode would swallow both.
    const lines = createInterface({ input: stdin, output: stderr, terminal: false });
    try {
      return await Promise.race([lines.question(question), once(lines, "close").then(endLine)]);
    } finally {
      lines.close();
      stdin.pause();
    }
  };
}
