/** Opens the signer: in a process of its own, or in a thread of this one. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import type { LocalSigner } from "../../adapters/evm/signers/local-signer.ts";
import { openSigner } from "../../adapters/evm/signers/open-signer.ts";
import { type Launched, neverStarted, openSigningProcess } from "../../adapters/evm/signers/process/signing-process.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { readEnvironment } from "../../adapters/system/environment.ts";
import type { SigningBounds } from "../../domain/keys/signing.ts";
import type { Entropy } from "../../ports/entropy.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import { type Config, keySourcesIn } from "../config/config.ts";

interface SigningPorts {
  readonly telemetry: Telemetry;
  readonly entropy: Entropy;
  /** Limits that the signing process enforces itself. */
  readonly bounds: Promise<SigningBounds>;
}

export async function openSigning(
  { signers: sources, signing }: Pick<Config, "signers" | "signing">,
  { telemetry, entropy, bounds }: SigningPorts,
): Promise<LocalSigner> {
  const warn = (message: string) =>
    telemetry.emit({ type: "alert", severity: "WARNING", code: "KEY_FILE_OPEN", message });
  const { variables } = readEnvironment();
  if (signing !== "process") return openSigner({ sources, clock: systemClock, environment: variables, warn });
  const services = keySourcesIn(sources).flatMap((source) => SERVICES[source] ?? []);
  const environment = only(variables, (name) => services.some((service) => name.startsWith(service)));
  const beginning = bounds.then((known) => ({ sources, environment, bounds: known }));
  return openSigningProcess({ launch, beginning, clock: systemClock, entropy, warn });
}

/** Path of the compiled entry file of the signing process. */
const MAIN = fileURLToPath(new URL("../signing-main.ts", import.meta.url)).replace(/\.ts$/, ".js");

/** Environment variables that Node itself reads at start: TLS trust, and library paths. */
const FOR_NODE = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH"];

/** Flag that starts Node without a SIGUSR1 listener, if this version has it (since 22.14 and 23.7). */
const WITHOUT_INSPECTOR = ["--disable-sigusr1"].filter((flag) => process.allowedNodeEnvironmentFlags.has(flag));

/**
 * Starts the signing process. Keys are sent over the channel, because other users can read a process's arguments and
 * environment.
 */
function startMain() {
  const env = only(readEnvironment().variables, (name) => FOR_NODE.includes(name));
  return spawn(process.execPath, [...WITHOUT_INSPECTOR, MAIN], { stdio: ["ignore", "ignore", "inherit", "pipe"], env });
}

export function launch(start = startMain): Launched {
  const child = start();
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.once("error", (error) => resolve(error.message));
  });
  // If no file descriptor is free, Node returns a child without streams and emits the error later.
  const streams: ChildProcess["stdio"] | undefined = child.stdio;
  if (streams === undefined) return neverStarted(ended);
  const channel = streams[3] as Duplex & { ref(): void; unref(): void };
  return {
    channel,
    ended,
    kill: () => void child.kill("SIGKILL"),
    hold: (held) => {
      for (const each of [child, channel]) held ? each.ref() : each.unref();
    },
  };
}

type Variables = Readonly<Record<string, string | undefined>>;

function only(variables: Variables, wanted: (name: string) => boolean): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => wanted(name)));
}

/** Prefixes of the environment variables that the SDKs of the key services read. */
const SERVICES: Readonly<Partial<Record<keyof Config["signers"], readonly string[]>>> = {
  awsKmsKeyIds: ["AWS_"],
  gcpKmsKeyVersions: ["GOOGLE_", "GCE_", "CLOUDSDK_"],
  vaultKeyPaths: ["VAULT_"],
};
