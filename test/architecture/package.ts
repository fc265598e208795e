import { readText } from "./tree.ts";

interface Target {
  readonly types: string;
  readonly default: string;
}

export interface Package {
  readonly version: string;
  readonly files: readonly string[];
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, Target | string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

export function readPackage(): Package {
  return JSON.parse(readText("package.json")) as Package;
}

/**
 * Entry points of the package: subpath exports, the command line, the page in the browser, and the types that its
 * scripts import by JSDoc.
 */
export function entryFiles(): readonly string[] {
  const exported = Object.values(readPackage().exports).filter((target) => typeof target === "object");
  const page = readText("src/adapters/dashboard/public/index.html");
  const scripts = [...page.matchAll(/<script[^>]+src="dashboard\/([^"]+)"/g)].map(([, name = ""]) => name);
  return [
    ...exported.map((target) => target.default.replace(/^\.\/dist\/(.*)\.js$/, "src/$1.ts")),
    "src/main/cli.ts",
    ...scripts.map((name) => `src/adapters/dashboard/public/${name}`),
    "src/adapters/dashboard/page-types.ts",
  ];
}
