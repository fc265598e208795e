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
  if (isBundled()) throw new ConfigurationError("", [BUNDLED]);
  // The node is loaded at the first call: most of its modules are of no use to a program that only imports types and
  // errors. webpack cannot bundle them; `isBundled` explains that at run time.
  const library = await import(/* webpackIgnore: true */ "./library.ts");
  return library.createFencepost(options);
}

const BUNDLED =
  "createFencepost cannot run from a bundle: it starts threads and reads SQL migrations from the files of its package. " +
  "Mark fencepost as external in your bundler (esbuild: --external:fencepost, webpack: externals), and install it " +
  "beside the bundle: docs/embed.md, Loading it";

/** webpack sets `import.meta.webpack`, and keeps the URL of the original module. Others have the URL of the bundle or none. */
function isBundled(): boolean {
  const url: string | undefined = import.meta.url;
  const { webpack } = import.meta as { readonly webpack?: number };
  return webpack !== undefined || !/\/main\/create-fencepost\.[jt]s$/.test(url ?? "");
}
