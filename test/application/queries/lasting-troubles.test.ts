/**
 * A lasting alert stays on the attention list exactly as long as its condition lasts, however long ago it was raised.
 */
import { afterEach, describe, expect, it } from "vitest";
import { linearRepricing } from "../../../src/domain/fees/repricing.ts";
import { SignerAway } from "../../../src/ports/signer.ts";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { SIGNER, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode();
}

const AN_HOUR = 3_600_000;
/** Long after an alert was raised. More virtual time would only cost the test more of the real one. */
const LONG_AFTER_MS = 600_000;
const shown = async ({ node }: WorldNode) => (await world.settle(node.api.attention())).items;
const said = ({ events }: WorldNode, code: string) =>
  events.some((event) => event.type === "alert" && event.code === code);

describe("the list of problems", () => {
  // protects [Everything at once] src/domain/troubles/table.ts, src/application/queries/node-reports.ts, src/application/queries/node-reports.ts, src/application/queries/attention.ts
  it("shows a signer as critical while it returns wrong signatures", async () => {
    const entry = await start();
    const honest = entry.signer.sign.bind(entry.signer);
    entry.signer.sign = () => Promise.reject(new SignerAway("it signed another receiver", { lies: true }));
    await world.settle(entry.node.api.create(transfer()));
    await world.clock.advance(LONG_AFTER_MS);
    expect(await shown(entry)).toContainEqual(expect.objectContaining({ code: "SIGNER_LIES", severity: "CRITICAL" }));
    entry.signer.sign = honest;
    await world.allSettled(1);
    await world.clock.advance(5_000);
    expect(await shown(entry)).toEqual([]);
  });

  it.each([
    ["the signer refuses to reprice", {}, (entry: WorldNode) => entry.signer.refuse(() => true)],
    ["has reached its maximum number of attempts", { maxAttempts: 2, repricing: linearRepricing(20) }, () => undefined],
    // protects [Everything at once] src/domain/troubles/table.ts, src/application/queries/node-reports.ts, src/application/queries/node-reports.ts, src/application/queries/attention.ts
  ] as const)("shows a transaction that %s, until the base fee is below its price", async (_, settings, refuse) => {
    const entry = await start({ settings: { resubmitIntervalMs: 2_000, stuckAfterMs: 10 * AN_HOUR, ...settings } });
    const txId = await ops.sent(entry);
    refuse(entry);
    world.chain.setBaseFee(90_000_000_000n);
    world.chain.mine();
    await world.until(() => said(entry, "CANNOT_RESIGN") || said(entry, "MAX_ATTEMPTS_REACHED"));
    await world.clock.advance(LONG_AFTER_MS);
    expect(await shown(entry)).toContainEqual(expect.objectContaining({ id: `tx:${txId}`, txId, nonce: 0 }));
    world.chain.setBaseFee(1_000_000_000n);
    await world.allSettled(1);
    await world.clock.advance(5_000);
    expect(await shown(entry)).toEqual([]);
  });

  // protects [Everything at once] src/domain/troubles/table.ts, src/application/queries/node-reports.ts, src/application/queries/node-reports.ts, src/application/queries/attention.ts
  it("drops a transaction once it no longer needs a higher price", async () => {
    const entry = await start({ settings: { resubmitIntervalMs: 2_000, stuckAfterMs: 10 * AN_HOUR } });
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const isShown = async () => (await shown(entry)).some(({ id }) => id === `tx:${txId}`);
    entry.signer.refuse(() => true);
    world.chain.setBaseFee(90_000_000_000n);
    world.chain.mine();
    await world.until(() => said(entry, "CANNOT_RESIGN"));
    expect(await isShown()).toBe(true);
    world.chain.dropTransaction(ops.row(txId).attempts[0]?.txHash as `0x${string}`);
    world.chain.setBaseFee(1_000_000_000n);
    world.chain.mine();
    await world.clock.advance(10_000);
    expect(ops.row(txId).receipt).toBeNull();
    expect(await isShown()).toBe(false);
  });

  // protects [Everything at once] src/domain/troubles/table.ts, src/application/queries/node-reports.ts, src/application/queries/node-reports.ts, src/application/queries/attention.ts
  it("shows a nonce count on which the endpoints disagree", async () => {
    world = new World({ settings: { reconciliationIntervalMs: 10_000 } });
    ops = new OperatedWorld(world);
    const other = new Faults();
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: other } });
    await ops.settled(await ops.create(entry));
    entry.faults.lieAboutNonce((count) => count + 5);
    await world.clock.advance(LONG_AFTER_MS);
    const found = (await shown(entry)).filter(({ code }) => code === "NONCE_DRIFT");
    expect(found).toMatchObject([{ severity: "ERROR", signer: SIGNER, sentence: expect.stringContaining("counts 6") }]);
    entry.faults.lieAboutNonce((count) => count);
    await world.clock.advance(60_000);
    expect(await shown(entry)).toEqual([]);
  });
});
