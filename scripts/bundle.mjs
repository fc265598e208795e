// Puts the command line, its threads and its child processes into few files, with the packages that they use. A node that
// is started spends most of a second of processor time on finding, reading and linking 1,600 modules; eighty files take a
// quarter of that. Nothing is minified: a stack names the function, and the part of the source (`application.js`).
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, relative } from "node:path";
import { rolldown } from "rolldown";

/** Each is started on its own: by the launcher, as a child process, as a thread. */
const ENTRIES = [
  "main/cli.ts",
  "main/signing-main.ts",
  "main/dev/embedded/chain/dev-chain-main.ts",
  "adapters/evm/proof/worker/prove-worker.js",
  "adapters/evm/signers/worker/sign-worker.js",
];

/** Loaded from where they are installed: they look for files of their own beside themselves, or are optional. */
const LEFT_OUT = ["@nomicfoundation/edr", "jiti", "pg-native"];

/**
 * A file for each part of the source, from below upwards as they import each other. What only some commands need is in
 * files of its own (`entriesAware`), so that `--help` loads little.
 */
const PARTS = [
  { name: "packages", test: /[\\/]node_modules[\\/]/ },
  ...["domain", "ports", "contract", "application"].map((name) => ({ name, test: `/src/${name}/` })),
  { name: (id) => /\/src\/adapters\/(\w+)\//.exec(id)?.[1] ?? null, debugName: "adapters" },
  { name: "embedded", test: "/src/main/dev/embedded/" },
].map((part, depth) => ({ ...part, entriesAware: true, priority: -depth }));

/**
 * undici without what a node never uses: it is half of the package, and a node would evaluate it at every start. What
 * only some nodes use is evaluated when it is first used. Its modules form cycles: fetch must come before WebSocket, as in
 * its own index.
 */
const PART_OF_UNDICI = `
  Object.assign(require("./lib/dispatcher/dispatcher").prototype, require("./lib/api"));
  exports.Agent = require("./lib/dispatcher/agent");
  exports.Pool = require("./lib/dispatcher/pool");
  exports.buildConnector = require("./lib/core/connect");
  exports.errors = require("./lib/core/errors");
  Object.defineProperties(exports, {
    WebSocket: { get: () => (require("./lib/web/fetch"), require("./lib/web/websocket/websocket")).WebSocket },
    fetch: { get: () => require("./lib/web/fetch").fetch },
  });
`;

const nameOf = (path) => basename(path, extname(path));
const names = new Set(ENTRIES.map(nameOf));

/** Writes `dist/bundle`. Returns the folders of the packages whose code is in it. */
export async function bundle(root) {
  const source = join(root, "src");
  const bundle = await rolldown({
    cwd: root,
    input: Object.fromEntries(ENTRIES.map((path) => [nameOf(path), join(source, path)])),
    platform: "node",
    external: LEFT_OUT,
    logLevel: "warn",
    plugins: [
      { name: "places", transform: (code, id) => withPlaces(code, relative(source, id)) },
      { name: "on-node", transform: (code, id) => (/[\\/]pg[\\/]lib[\\/]stream\.js$/.test(id) ? onNode(code) : null) },
      { name: "part-of-undici", transform: (_, id) => (/[\\/]undici[\\/]index\.js$/.test(id) ? PART_OF_UNDICI : null) },
    ],
  });
  const { output } = await bundle.write({
    dir: join(root, "dist/bundle"),
    entryFileNames: "[name].js",
    chunkFileNames: ({ name }) => `${name.split("~")[0]}.js`,
    codeSplitting: { groups: PARTS },
    // Node reads text of ASCII alone in half the memory, and sooner.
    comments: false,
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
  });
  await bundle.close();
  return packagesOf(output, root);
}

const VIEM = /"(viem\/\w+)"/g;
/** The two forms in which a compiled module may import functions of viem: each names them. */
const VIEM_NAMED = /(?:import \{([^}]+)\} from |const \{([^}]+)\} = await import\()"(viem\/\w+)"/g;

/**
 * Writes the functions of viem that the compiled modules import to `dist/packages`, and has them imported from there:
 * who installs the library does not install viem, which is 78 MB with its own packages. They are among the packages of
 * `bundle`, because the command line uses them too.
 */
export async function bundleViem(root) {
  const dist = join(root, "dist");
  const names = new Map();
  for (const path of modulesIn(dist)) {
    const code = readFileSync(path, "utf8");
    const named = [...code.matchAll(VIEM_NAMED)];
    if (named.length !== [...code.matchAll(VIEM)].length) throw new Error(`${path}: import functions of viem by name`);
    for (const [, imported, awaited, from] of named) {
      const functions = (imported ?? awaited).split(",").map((name) => name.trim().split(/ as |:/)[0]);
      names.set(from, new Set([...(names.get(from) ?? []), ...functions].filter((name) => name !== "")));
    }
    const place = (from) => relative(dirname(path), join(dist, "packages", fileOf(from)));
    if (named.length > 0)
      writeFileSync(
        path,
        code.replaceAll(VIEM, (_, from) => JSON.stringify(place(from))),
      );
  }
  mkdirSync(join(dist, "packages"));
  for (const [from, functions] of names) {
    writeFileSync(join(dist, "packages", fileOf(from)), `export { ${[...functions].join(", ")} } from "${from}";\n`);
  }
  const input = [...names.keys()].map((from) => join(dist, "packages", fileOf(from)));
  const bundle = await rolldown({ cwd: root, input, platform: "node", logLevel: "warn" });
  await bundle.write({ dir: join(dist, "packages"), chunkFileNames: "viem-shared.js" });
  await bundle.close();
}

const fileOf = (from) => `${from.replace("/", "-")}.js`;

/** Compiled modules of the library: everything but the bundle of the command line. */
function modulesIn(dist) {
  const paths = readdirSync(dist, { recursive: true }).filter((path) => path.endsWith(".js"));
  return paths
    .filter((path) => !/^(?:bundle|adapters[\\/]dashboard[\\/]public)\b/.test(path))
    .map((path) => join(dist, path));
}

/**
 * Migrations, the dashboard and package.json lie beside the compiled modules, and a module of the bundle looks for them
 * from where its compiled twin is. Threads and child processes are those of the bundle.
 */
function withPlaces(code, path) {
  if (path.startsWith("..") || !code.includes("import.meta.url")) return null;
  const twin = `new URL("../${path.replace(/\.ts$/, ".js")}", import.meta.url).href`;
  return code.replaceAll(/new URL\("([^"]+)", import\.meta\.url\)|import\.meta\.url/g, (place, file = "") =>
    names.has(nameOf(file))
      ? `new URL("./${nameOf(file)}.js", import.meta.url)`
      : place.replace("import.meta.url", twin),
  );
}

/**
 * pg asks, as it is loaded, whether it runs at Cloudflare, by way of `Response`: Node then loads a whole HTTP client that `start`
 * does not need.
 */
function onNode(code) {
  const question = "if (isCloudflareRuntime())";
  if (!code.includes(question)) throw new Error("pg/lib/stream.js no longer asks where it runs: take this out");
  return code.replace(question, "if (false)");
}

/** The folder of each package with a module in the bundle, sorted; the bundler's own, too, which adds a few lines. */
function packagesOf(output, root) {
  const modules = output.flatMap((file) => file.moduleIds ?? []);
  const installed = modules.filter((id) => /[\\/]node_modules[\\/]/.test(id)).map(folderOf);
  return [...new Set([...installed, join(root, "node_modules/rolldown")])].sort();
}

/** Some packages have a package.json in a folder of theirs that says no more than how its files are read. */
function folderOf(path) {
  const folder = dirname(path);
  const manifest = join(folder, "package.json");
  return existsSync(manifest) && "version" in JSON.parse(readFileSync(manifest, "utf8")) ? folder : folderOf(folder);
}
