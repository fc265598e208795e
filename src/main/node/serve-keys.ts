/**
 * The signing process, started by a node (open-signing.ts). It receives everything over one channel, and ends when the
 * channel closes.
 */
import { url as inspectorUrl } from "node:inspector";
import { Socket } from "node:net";
import { serveSigner } from "../../adapters/evm/signers/process/serve-signer.ts";
import type { Beginning } from "../../adapters/evm/signers/process/wire.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { createMask, type Mask } from "../../domain/text/mask.ts";
import { outsideSecrets } from "../config/outside-secrets.ts";

const CHANNEL = 3;

/** Serves signing requests; resolves when the channel is closed. */
export async function serveKeys(): Promise<void> {
  // Ignore stop signals: terminals and supervisors signal the whole process group, but the node still needs signatures
  // until it has finished its work. It then closes the channel.
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => undefined);
  process.title = "fencepost-sign";
  await serveSigner(new Socket({ fd: CHANNEL, readable: true, writable: true }), { clock: systemClock, maskOf });
}

async function maskOf({ sources, environment }: Beginning): Promise<Mask> {
  // An open inspector means that SIGUSR1 arrived before our listener was installed. Use SIGKILL, because process.exit
  // would wait for the inspector's client.
  if (inspectorUrl() !== undefined) process.kill(process.pid, "SIGKILL");
  const { privateKeys = [], mnemonic = null } = sources;
  const own = [...privateKeys.map((key) => key.replace(/^0x/i, "")), ...(mnemonic === null ? [] : [mnemonic.phrase])];
  return maskOfBytes(Buffer.from(JSON.stringify([...own, ...(await outsideSecrets(sources, environment))])));
}

/**
 * Keeps the secrets as bytes outside V8's heap. The mask that hides them in texts is built only when an error needs
 * one.
 */
function maskOfBytes(secrets: Buffer): Mask {
  return (text) => createMask(JSON.parse(secrets.toString()) as readonly string[])(text);
}
