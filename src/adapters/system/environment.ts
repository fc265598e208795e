import { homedir, hostname } from "node:os";

export type Environment = ReturnType<typeof readEnvironment>;

/** How the process was started, read once: nothing else in the code looks at `process.env`. */
export function readEnvironment() {
  const variables: Readonly<Record<string, string | undefined>> = { ...process.env };
  return { variables, workingDirectory: process.cwd(), hostname: hostname(), home: homedir(), pid: process.pid };
}
