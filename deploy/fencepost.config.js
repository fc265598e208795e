// The configuration of a node whose secrets are files: what Docker, Kubernetes and systemd hand to a process. A secret in a
// variable is shown by `docker inspect`, and inherited by every child. Whatever is no secret is said by variables, which win
// over this file (docs/configuration.md). Files that are not there are settings that are not set; `fencepost config` shows
// what holds. A file that is there and cannot be read is an error that names it, and not the same as none.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

// systemd sets it by itself; the image and the chart say where theirs are mounted.
const directory = process.env.CREDENTIALS_DIRECTORY ?? "/run/secrets";
// `statSync` says nothing of a file that is absent, and throws where it may not look: a folder that is closed to this user.
const present = (name) =>
  statSync(join(directory, name), { throwIfNoEntry: false }) ? join(directory, name) : undefined;

function secret(name) {
  const path = present(name);
  return path === undefined ? undefined : readFileSync(path, "utf8").trim();
}

export default {
  databaseUrl: secret("database-url"),
  // Past a transaction pooler, where database-url leads through one.
  directDatabaseUrl: secret("direct-database-url"),
  rpcUrl: secret("rpc-url"),
  apiKeys: secret("api-keys"),
  clusterSecret: secret("cluster-secret"),
  // By their names only: the signing process reads them, and the node itself never does.
  privateKeyFiles: present("signer-keys"),
  keystorePasswordFile: present("keystore-password"),
  stuckHookSecret: secret("stuck-hook-secret"),
  alertWebhookUrl: secret("alert-webhook-url"),
};
