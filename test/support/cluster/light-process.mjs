// Run by tests: `node light-process.mjs <role> <database> <signer> <lease>` is not a node, only an instance with a
// heartbeat and the store's ports. SIGUSR2 makes it act in its role; it prints a line for each action.
//
//   claimant  claims the lane once per signal, after declaring expired instances dead
//   writer    claims the lane and writes to it over many connections, for ever; the signal stops its heartbeat, not its
// writes
import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import { openPostgresStore } from "../../../dist/adapters/postgres/store.js";
import { systemClock } from "../../../dist/adapters/system/clock.js";

const [role, databaseUrl, signer, lease] = process.argv.slice(2);
const leaseDurationMs = Number(lease);
const lane = { chainId: 31_337, signer };
const instanceId = randomUUID();
/** Number of stores, each with four connections to write over. */
const STORES = role === "writer" ? 4 : 1;
const WRITERS_PER_STORE = 4;

const stores = await Promise.all(
  Array.from({ length: STORES }, () => openPostgresStore({ databaseUrl, clock: systemClock, leaseDurationMs })),
);
const [store] = stores;
let beating = true;

/** @param {object} line */
function say(line) {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

async function beat() {
  if (beating) await patiently(() => store.renewInstance(instanceId, leaseDurationMs));
}

/** Retries a call that failed because it waited too long for a lock or a processor. Such a call has changed nothing. */
async function patiently(work) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error.name !== "StoreUnavailable") throw error;
    }
  }
}

async function claim() {
  for (const { instanceId: other, counter, dead, expired } of await store.instances()) {
    if (expired && !dead) await store.declareDead(other, counter, "expired");
  }
  const acquisition = await patiently(() => store.acquireLane(lane, instanceId));
  say({ result: acquisition.result, token: acquisition.fence?.token ?? null });
}

/** Writes until the fencing token makes the database refuse a write. */
async function write(to, fence) {
  for (let fenced = false; !fenced; ) {
    try {
      const {
        outcomes: [outcome],
      } = await to.commit([{ kind: "suspend", fence, suspended: false }]);
      fenced = outcome.status === "fenced";
    } catch {
      // Another session holds the lock; retry at once.
    }
  }
}

async function writeForEver() {
  const { fence } = await store.acquireLane(lane, instanceId);
  const writing = stores.flatMap((each) => Array.from({ length: WRITERS_PER_STORE }, () => write(each, fence)));
  process.on("SIGUSR2", () => {
    beating = false;
  });
  void Promise.all(writing).then(() => say({ result: "fenced", token: fence.token }));
}

const registration = {
  instanceId,
  nodeId: `${role}-${process.pid}`,
  url: "",
  version: "0.0.0",
  mode: "basic",
  leaseDurationMs,
  signers: [signer],
  chains: [lane.chainId],
  standsBack: false,
};
await patiently(() => store.registerInstance(registration));
setInterval(() => void beat(), leaseDurationMs / 5);
if (role === "writer") await writeForEver();
else process.on("SIGUSR2", () => void claim().catch((error) => say({ result: String(error), token: null })));
say({ ready: true, url: "", nodeId: instanceId });
