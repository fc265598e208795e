import { isNode, lineOf, type Node, nameOf, nodesIn, resolveFrom, type SourceFile, walk } from "../tree.ts";

export interface Import {
  readonly from: string;
  readonly line: number;
  /**
   * The imported file as a path from the repository's root; or the name of the package or `node:` module as written in
   * the import.
   */
  readonly target: string;
  readonly isRelative: boolean;
  /** True if the import disappears in compilation: `import type`, or every name in it is marked `type`. */
  readonly isTypeOnly: boolean;
  /**
   * True if the module is loaded only later, when the code runs, or in a separate thread. Importing this file then does
   * not load it.
   */
  readonly isLazy: boolean;
}

/**
 * All imports of a file: static, dynamic and type imports, re-exports, and files loaded by `new URL("…",
 * import.meta.url)`.
 */
export function importsOf(file: SourceFile): readonly Import[] {
  const known = found.get(file) ?? findImports(file);
  found.set(file, known);
  return known;
}

/** A cache, because many rules need the imports of the same file. */
const found = new WeakMap<SourceFile, readonly Import[]>();

function findImports(file: SourceFile): readonly Import[] {
  const imports: Import[] = [];
  walk(file.program, (node) => {
    const specifier = specifierOf(node);
    if (specifier === null) return undefined;
    const isRelative = specifier.startsWith(".");
    imports.push({
      from: file.path,
      line: lineOf(file, node.start),
      target: isRelative ? resolveFrom(file.path, specifier) : specifier,
      isRelative,
      isTypeOnly: isTypeOnly(node),
      isLazy: node.type === "ImportExpression" || node.type === "NewExpression",
    });
    return undefined;
  });
  return imports;
}

function specifierOf(node: Node): string | null {
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportNamedDeclaration":
    case "ExportAllDeclaration":
    case "ImportExpression":
    case "TSImportType":
      return nameOf(node.source ?? node.argument);
    case "NewExpression":
      return ownFile(node);
    default:
      return null;
  }
}

/** The file in `new URL("./worker.js", import.meta.url)`. A URL of a folder (ending in a slash) imports nothing. */
function ownFile({ callee, arguments: given }: Node): string | null {
  const [file, base] = nodesIn(given);
  if (nameOf(callee) !== "URL" || !isNode(base?.object)) return null;
  const path = nameOf(file);
  return base.object.type === "MetaProperty" && path !== null && /\.(ts|js)$/.test(path) ? path : null;
}

function isTypeOnly(node: Node): boolean {
  if (node.type === "TSImportType" || node.importKind === "type" || node.exportKind === "type") return true;
  const names = nodesIn(node.specifiers);
  return names.length > 0 && names.every(({ importKind, exportKind }) => (importKind ?? exportKind) === "type");
}

interface Layer {
  /** Other layers that this layer may import. */
  readonly imports: readonly string[];
  /** Only types may be imported from these layers. */
  readonly types?: readonly string[];
  readonly packages: readonly string[];
  /** Only types may be imported from these packages. */
  readonly typesOf?: readonly string[];
}

const CORE = ["src/domain", "src/ports"];
const EVERY_ADAPTER = "src/adapters/*";
/** Adapters that the core calls through a port. They must not depend on their callers. */
const DRIVEN = { imports: CORE };

/** Error classes that the SDK, the library and the wallet libraries share. */
const ERRORS = "src/client/error-classes.ts";

/**
 * Allowed imports per layer. A package may be imported by one layer only, with the exceptions listed here. Node's own
 * modules are for adapters and main; the domain may use `node:crypto` for hashing.
 */
const LAYERS: Readonly<Record<string, Layer>> = {
  "src/domain": { imports: [], packages: ["node:crypto"] },
  "src/ports": { imports: ["src/domain"], packages: [] },
  "src/application": { imports: CORE, packages: [] },
  "src/contract": { imports: ["src/domain"], packages: ["typebox"], typesOf: ["abitype"] },
  [ERRORS]: { imports: [], types: ["src/contract"], packages: [] },
  "src/client": { imports: [ERRORS], types: ["src/contract"], packages: [] },
  // Wallet libraries run in the caller's process: they use only the public interface and load no code of a node.
  "src/wallets": { imports: [ERRORS], types: ["src/contract"], packages: [] },
  "src/viem": { imports: ["src/wallets", ERRORS], packages: ["viem"] },
  "src/ethers": { imports: ["src/wallets", ERRORS], types: ["src/contract"], packages: ["ethers"] },
  "src/adapters/postgres": { ...DRIVEN, packages: ["node:*", "pg"] },
  "src/adapters/evm": { ...DRIVEN, packages: ["node:*", "viem", "undici", "@bitauth/libauth", "hash-wasm"] },
  "src/adapters/system": { ...DRIVEN, packages: ["node:*", "pino", "prom-client"] },
  "src/adapters/telemetry": { ...DRIVEN, packages: ["node:*", "@opentelemetry/api"] },
  "src/adapters/webhooks": { ...DRIVEN, packages: ["node:*", "undici"] },
  // The sending and the receiving side of requests between nodes share the names of the wire format.
  "src/adapters/peers": { imports: [...CORE, "src/contract"], packages: ["node:*", "undici"] },
  "src/adapters/http": {
    imports: [...CORE, "src/application", "src/contract"],
    packages: ["node:*", "fastify", "typebox"],
  },
  // The command line and the dashboard use only the public interface.
  "src/adapters/cli": {
    imports: ["src/contract", "src/client"],
    packages: ["node:*", "commander"],
  },
  "src/adapters/dashboard/public": { imports: [], packages: [] },
  "src/adapters/dashboard": { imports: ["src/contract", "src/client"], packages: ["node:*"] },
  // The database and chain that `fencepost dev` provides for a developer. They do not depend on the node that it starts
  // on them.
  "src/main/dev/embedded": {
    imports: [...DRIVEN.imports, "src/main/node/version.ts"],
    packages: ["node:*", "@nomicfoundation/edr", "viem"],
  },
  // version.ts is the only file that reads package.json.
  "src/main/node/version.ts": { imports: [], packages: ["node:*"] },
  // The campaign is a caller of the nodes, and checks hashes and signatures with other code than theirs.
  "src/main/dev/chaos": {
    imports: [...CORE, EVERY_ADAPTER, "src/client", "src/main", "src/main/dev/embedded"],
    packages: ["node:*", "pg", "viem"],
  },
  "src/main": {
    imports: [
      ...CORE,
      "src/application",
      "src/contract",
      "src/client",
      ERRORS,
      EVERY_ADAPTER,
      "src/main/dev/embedded",
      "src/main/dev/chaos",
      "src/main/node/version.ts",
    ],
    // `pg` is needed for the type of a caller's own client (`send(intent, { client })`), and for the databases of
    // `fencepost/testing`.
    packages: ["node:*", "jiti", "pg"],
    typesOf: ["typebox"],
  },
  "src/index.ts": { imports: [...CORE, "src/application", "src/client", "src/contract", "src/main"], packages: [] },
};

const APPLICATION = "src/application";

/**
 * The folders of the application, lowest first: each may import the folders before it and none after it. Files outside
 * these folders (types of the interface, settings) count as lowest. authority.ts counts as highest, because every API
 * call passes through it.
 */
const FLOORS: readonly string[] = [
  "requests",
  "writer",
  "lane",
  "chain",
  "cluster",
  "queries",
  "stages",
  "detours",
  "operations",
  "loops",
];

const ROOF: readonly (string | undefined)[] = ["authority.ts"];

/** Level of a file in the order of folders: 0 for the lowest; null for a folder without a level. */
function floorOf(path: string): number | null {
  const [room, ...inside] = path.slice(APPLICATION.length + 1).split("/");
  if (inside.length === 0) return ROOF.includes(room) ? FLOORS.length + 1 : 0;
  const floor = FLOORS.indexOf(room ?? "");
  return floor < 0 ? null : floor + 1;
}

/** Imports inside the application, including type imports, that go from a lower folder to a higher one. */
export function upwardImports(files: readonly SourceFile[]): readonly string[] {
  const inside = (path: string) => path.startsWith(`${APPLICATION}/`);
  return files
    .filter(({ path }) => inside(path))
    .flatMap((file) => {
      const floor = floorOf(file.path);
      if (floor === null) return [`${file.path}: stands on no floor`];
      return importsOf(file)
        .filter(({ target }) => inside(target) && (floorOf(target) ?? 0) > floor)
        .map(({ from, line, target }) => `${from}:${line}: must not import ${target}`);
    });
}

export function layerOf(path: string): string | null {
  return Object.keys(LAYERS).find((layer) => path === layer || path.startsWith(`${layer}/`)) ?? null;
}

export function wrongDirections(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap((file) => {
    const name = layerOf(file.path);
    const layer = name === null ? undefined : LAYERS[name];
    if (name === null || layer === undefined) return [`${file.path}: belongs to no layer`];
    return importsOf(file)
      .filter((each) => !(each.isRelative ? mayImport({ name, ...layer }, each) : mayUse(layer, each)))
      .map((each) => `${each.from}:${each.line}: ${name} must not import ${each.target}`);
  });
}

function mayImport({ name, imports, types = [] }: Layer & { readonly name: string }, each: Import): boolean {
  const target = layerOf(each.target);
  if (target === null) return false;
  const within = (allowed: readonly string[]) =>
    allowed.some((layer) => layer === target || (layer === EVERY_ADAPTER && target.startsWith("src/adapters/")));
  return target === name || within(imports) || (each.isTypeOnly && within(types));
}

function mayUse({ packages, typesOf = [] }: Layer, { target, isTypeOnly }: Import): boolean {
  const name = packageOf(target);
  if (isTypeOnly && typesOf.includes(name)) return true;
  return packages.includes(name) || (name.startsWith("node:") && packages.includes("node:*"));
}

/**
 * The package of an import specifier: `viem/accounts` → `viem`, `@bitauth/libauth/x` → `@bitauth/libauth`,
 * `node:fs/promises` unchanged.
 */
export function packageOf(specifier: string): string {
  if (specifier.startsWith("node:")) return specifier;
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

/** Files that no entry point reaches. Type imports count: a file of types is used by the files that import them. */
export function unreachable(files: readonly SourceFile[], entries: readonly string[]): readonly string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const open = [...entries];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const file = byPath.get(path);
    if (file === undefined || seen.has(path)) continue;
    seen.add(path);
    open.push(...importsOf(file).map(({ target }) => target));
  }
  return files.map(({ path }) => path).filter((path) => !seen.has(path));
}

/** Files and packages that importing a file loads, before any of its functions is called. */
export function loadedBy(entry: string, files: readonly SourceFile[]): readonly string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const open = [entry];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const file = byPath.get(path);
    const loaded = file === undefined ? [] : importsOf(file).filter((each) => !each.isTypeOnly && !each.isLazy);
    open.push(...loaded.map(({ target }) => target));
  }
  return [...seen].filter((path) => !path.startsWith("node:")).sort();
}

/** Import cycles. With "types", cycles through type imports are included. */
export function cycles(files: readonly SourceFile[], of: "code" | "types" = "code"): readonly string[] {
  const loads = new Map(
    files.map((file) => [
      file.path,
      importsOf(file)
        .filter(({ isRelative, isTypeOnly, isLazy }) => isRelative && (of === "types" ? !isLazy : !isTypeOnly))
        .map(({ target }) => target),
    ]),
  );
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path].join(" → "));
    if (done.has(path) || trail.includes(path)) return;
    for (const next of loads.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of loads.keys()) visit(path, []);
  return found;
}

/**
 * Folders that import each other, as `one ↔ other`, so that neither is below the other. Inside the application,
 * `upwardImports` is stricter.
 */
export function tangledFolders(files: readonly SourceFile[]): readonly string[] {
  const folderOf = (path: string) => path.slice(0, path.lastIndexOf("/"));
  const imports = new Set<string>();
  for (const file of files.filter(({ path }) => !path.startsWith(`${APPLICATION}/`))) {
    const eager = importsOf(file).filter(({ isRelative, isLazy }) => isRelative && !isLazy);
    for (const { target } of eager) imports.add(`${folderOf(file.path)} ${folderOf(target)}`);
  }
  const pairs = [...imports].map((each) => each.split(" ") as [string, string]);
  return pairs
    .filter(([from, to]) => from < to && imports.has(`${to} ${from}`))
    .map(([from, to]) => `${from} ↔ ${to}`)
    .sort();
}
