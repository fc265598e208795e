/** The signing process, started by a node (open-signing.ts). It is told everything over one channel, and ends with it. */
import { Socket } from "node:net";
import { serveSigner } from "../adapters/evm/signers/process/serve-signer.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { createMask } from "../domain/mask.ts";
import { outsideSecrets } from "./config/outside-secrets.ts";

const CHANNEL = 3;

// A terminal and a supervisor tell every process of the group to stop. The node needs signatures until it has drained, and
// closes the channel then.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => undefined);
process.title = "fencepost-sign";

await serveSigner(new Socket({ fd: CHANNEL, readable: true, writable: true }), {
  clock: systemClock,
  maskOf: async ({ sources, environment }) => {
    const { privateKeys = [], mnemonic = null } = sources;
    const own = [...privateKeys.map((key) => key.replace(/^0x/i, "")), ...(mnemonic === null ? [] : [mnemonic.phrase])];
    return createMask([...own, ...(await outsideSecrets(sources, environment))]);
  },
});
process.exit(0);
