import { ConfigurationError } from "./library/own-errors.ts";
import type { Fencepost, FencepostOptions } from "./library.ts";

/**
 * Runs the same node as `fencepost start` inside this process, without HTTP. It forwards creates to nodes that have a
 * URL, but has none itself, and owns a lane only if no node with a URL serves it.
 *
 * @throws ConfigurationError if an option is wrong; UnavailableError if the database or the chain does not answer.
 * @example
 * const fencepost = await createFencepost({
 *   databaseUrl: "postgres://app:secret@localhost/app",
 *   chains: [{ rpc: "https://rpc.example", confirmations: 20 }],
 *   awsKmsKeyIds: ["alias/payouts"],
 * });
 */
export async function createFencepost(options: FencepostOptions): Promise<Fencepost> {
  if (isBundled()) throw inBundle();
  // The node is loaded at the first call: most of its modules are of no use to a program that only imports types and
  // errors. webpack cannot bundle them; `isBundled` explains that at run time.
  const library = await import(/* webpackIgnore: true */ "./library.ts").catch((error: unknown) => {
    throw isMissing(error) ? inBundle() : error;
  });
  return library.createFencepost(options);
}

const BUNDLED =
  "createFencepost cannot run from a bundle: it starts threads and reads SQL migrations from the files of its package. " +
  "Mark fencepost as external in your bundler (esbuild: --external:fencepost, webpack: externals, Next.js: " +
  "serverExternalPackages), and install it beside the bundle: docs/embed.md, Loading it";

const inBundle = () => new ConfigurationError("", [BUNDLED]);

/** webpack sets `import.meta.webpack`, and keeps the URL of the original module. Others have the URL of the bundle or none. */
function isBundled(): boolean {
  const url: string | undefined = import.meta.url;
  const { webpack } = import.meta as { readonly webpack?: number };
  return webpack !== undefined || !/\/main\/create-fencepost\.[jt]s$/.test(url ?? "");
}

/**
 * True if the node's own module is not beside this one. Turbopack (Next.js) keeps the URL of the original module, and
 * leaves that import as it is: it then looks beside the bundle. A package that is not installed is another error.
 */
function isMissing(error: unknown): boolean {
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown };
  return code === "ERR_MODULE_NOT_FOUND" && /[\\/]library\.[jt]s' /.test(String(message));
}
