import { homedir, hostname } from "node:os";

export type Environment = ReturnType<typeof readEnvironment>;

/** How the process was started, read once: nothing else in the code looks at `process.env`. */
export function readEnvironment(findHome: () => string = homedir) {
  const variables: Readonly<Record<string, string | undefined>> = { ...process.env };
  const home = homeOrRoot(findHome);
  return { variables, workingDirectory: process.cwd(), hostname: hostname(), home, pid: process.pid };
}

/**
 * An account that no file of the machine names, which is what systemd's DynamicUser and many containers run a node under, has no
 * home, and Node throws. Where profiles are kept is no reason not to start; `/` is the home that Docker gives to such accounts.
 */
function homeOrRoot(findHome: () => string): string {
  try {
    return findHome();
  } catch {
    return "/";
  }
}
