import { homedir, hostname } from "node:os";

export type Environment = ReturnType<typeof readEnvironment>;

/** Reads the environment of the process once; no other code reads `process.env`. */
export function readEnvironment(findHome: () => string = homedir) {
  const variables: Readonly<Record<string, string | undefined>> = { ...process.env };
  const home = homeOrRoot(findHome);
  return { variables, workingDirectory: process.cwd(), hostname: hostname(), home, pid: process.pid };
}

/**
 * Home directory, or `/` if there is none. systemd's DynamicUser and many containers run a node under an account
 * without an entry in passwd; then `homedir` throws. Profiles are optional, so the node starts anyway, with the home
 * that Docker gives to such accounts.
 */
function homeOrRoot(findHome: () => string) {
  try {
    return findHome();
  } catch {
    return "/";
  }
}
