/** Reserved and free nonces after a real process is killed right after each step. */
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect } from "vitest";
import { FencepostApiError, type FencepostClient } from "../../../src/client/index.ts";
import { audit } from "../../support/audit.ts";
import { it, KEYS, RECIPIENT, SHORT_LEASE, SIGNER } from "../../support/integration.ts";
import { nodeOnceReady } from "../../support/node-process.ts";
import { NONCE_FAILPOINTS } from "../../support/nonce-failpoints.ts";
import { transfer } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

const GWEI = 1_000_000_000n;

/**
 * A signer configured with plain keys never refuses to sign, so the failpoint `giveUp.committed` is not reached here;
 * test/application/nonces/reservations-crash.test.ts covers it.
 */
const WALKED = NONCE_FAILPOINTS.filter((name) => name !== "giveUp.committed");

function sign(nonce: number): Promise<`0x${string}`> {
  const fees = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI };
  return privateKeyToAccount(KEYS[0]).signTransaction({
    ...{ type: "eip1559", chainId: 31_337, nonce, to: RECIPIENT, value: 77n, gas: 21_000n, ...fees },
  });
}

/**
 * Repeats a request until it has a final response. Returns null if an earlier try had already been carried out, or if
 * it is too late for the request.
 */
async function surely<T>(client: () => FencepostClient | null, ask: (client: FencepostClient) => Promise<T>) {
  const answered = await waitUntil(async () => {
    const current = client();
    if (current === null) return null;
    try {
      return { answer: await ask(current) };
    } catch (error) {
      const isOver = error instanceof FencepostApiError && error.code === "CONFLICT";
      return isOver ? { answer: null } : null;
    }
  }, "it is answered");
  return answered.answer;
}

async function suspended(client: FencepostClient | null, url: string, action: "suspend" | "resume"): Promise<void> {
  if (client === null) throw new Error("no node serves");
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ reason: "test" });
  const answer = await fetch(`${url}/api/v1/signers/${SIGNER}/${action}`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(`${action} was answered ${answer.status}`);
}

describe("after SIGKILL at one step, every nonce is used once and every transaction is mined", () => {
  it.for(WALKED)("step %s", async (failpoint, { database, simulated, nodes }) => {
    let serving: { readonly client: FencepostClient; readonly url: string } | null = null;
    const variables = { ...SHORT_LEASE, FENCEPOST_HOLE_POLICY: "heal" };
    const doomed = nodes.crashing(failpoint, simulated.url, variables);
    serving = await nodeOnceReady(doomed);
    const next = doomed.exited.then(async () => {
      serving = null;
      serving = await nodes.start(simulated.url, variables);
    });
    const client = () => serving?.client ?? null;
    const reserve = (requestId: string, ttl: `${number}${"s" | "m"}`) =>
      surely(client, (api) => api.reserveNonce({ signer: SIGNER, ttl, requestId }));
    const forgotten = await reserve("forgotten", "2s");
    const kept = await reserve("kept", "10m");
    const back = await reserve("back", "10m");
    await surely(client, () => suspended(client(), serving?.url ?? "", "suspend"));
    for (const index of [1, 2, 3]) await surely(client, (api) => api.send(transfer(index)));
    await surely(client, (api) => api.releaseNonce(back?.reservationId ?? ""));
    await surely(client, () => suspended(client(), serving?.url ?? "", "resume"));
    const rawTransaction = await sign(kept?.nonce ?? -1);
    await surely(client, (api) => api.submitReserved(kept?.reservationId ?? "", rawTransaction));
    expect(await doomed.exited, doomed.stderr()).toEqual({ code: null, signal: "SIGKILL" });
    await next;
    const confirmed = "SELECT nonce::int FROM fencepost.transaction WHERE state = 'CONFIRMED' ORDER BY nonce";
    await waitUntil(async () => (await database.query(confirmed)).length === 4, "everything is confirmed");
    const settled = "SELECT 1 FROM fencepost.transaction WHERE state NOT IN ('CONFIRMED', 'FAILED_FINAL')";
    await waitUntil(async () => (await database.query(settled)).length === 0, "the placeholder is too");
    expect(await database.query(confirmed)).toEqual([1, 2, 3, 4].map((nonce) => ({ nonce })));
    expect(forgotten?.nonce).toBe(0);
    const states = await database.query<{ state: string }>("SELECT state FROM fencepost.reservation ORDER BY state");
    expect(states.map(({ state }) => state)).toEqual(["EXPIRED", "RELEASED", "SUBMITTED"]);
    expect(await database.query("SELECT nonce::int, why FROM fencepost.hole")).toEqual([
      { nonce: 5, why: "shiftedDown" },
    ]);
    const witnessed = simulated.chain.witness.map(({ hash }) => hash);
    await audit({ database, rpcUrl: simulated.url, witnessed });
  });
});
