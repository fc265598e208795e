import { hostname } from "node:os";

/** What the process was started with, read once: nothing else in the code looks at `process.env`. */
export interface Environment {
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  readonly hostname: string;
  readonly pid: number;
}

export function readEnvironment(): Environment {
  return {
    variables: { ...process.env },
    workingDirectory: process.cwd(),
    hostname: hostname(),
    pid: process.pid,
  };
}
