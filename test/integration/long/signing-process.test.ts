/** A signing process is repeatedly killed and frozen while prices rise: every transaction is executed once. */
import { describe, expect } from "vitest";
import { audit, untilSettled } from "../../support/audit.ts";
import { it } from "../../support/integration.ts";
import { startLoad } from "../../support/load.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { untilThere } from "../../support/signing-child.ts";
import { transfer } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

const GWEI = 1_000_000_000n;

describe("a signing process under load", () => {
  it.for([
    ["SIGKILL", 10],
    ["SIGSTOP", 2],
  ] as const)(
    "loses nothing and sends nothing twice if it gets %s %i times",
    async ([signal, times], { simulated, nodes, database }) => {
      const node = await nodes.start(simulated.url, {
        FENCEPOST_SIGNING: "process",
        FENCEPOST_RESUBMIT_INTERVAL: "1s",
      });
      const caller = new PersistentCaller(() => node.client);
      const load = startLoad({ caller, request: (index) => transfer(index), workers: 4, batch: 5 });
      let [accepted, last] = [0, 0];
      for (let struck = 0; struck < times; struck++) {
        await waitUntil(() => load.accepted.length > accepted, "more is accepted, whether or not it can be signed");
        accepted = load.accepted.length;
        // The fees offered before are too low now, so transactions are repriced and signed again.
        simulated.chain.setBaseFee(BigInt(1 + (struck % 5)) * GWEI);
        const signing = await waitUntil(async () => {
          const pid = await untilThere(node.pid);
          return pid === last ? null : pid;
        }, "another one is there");
        process.kill(signing, signal);
        last = signing;
      }
      await waitUntil(async () => (await untilThere(node.pid)) !== last, "the last one is replaced", {
        giveUpMs: 60_000,
      });
      await load.stop();
      await untilSettled(database, load.accepted.length);
      const witnessed = simulated.chain.witness.map(({ hash }) => hash);
      await audit({ database, rpcUrl: simulated.url, witnessed });
      expect(node.stderr()).not.toContain("NONCE_GIVEN_UP");
    },
  );
});
