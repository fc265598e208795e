import { expect } from "vitest";
import type { Transaction } from "../../../src/index.ts";
import { audit, untilAtRest, untilSettled } from "../audit.ts";
import { SIGNER } from "../integration.ts";
import type { PayOptions, Policy, Scene, Setting } from "./scene.ts";
import { executions } from "./tally.ts";

/** The final states of payloads, by number; `CONFIRMED` by default. */
export type Ends = Readonly<Record<number, string>>;

export interface Trouble {
  readonly name: string;
  readonly setting?: Setting;
  /**
   * The hole policies under which this fault is tested. If absent, both are tested, because the policy must make no
   * difference.
   */
  readonly policies?: readonly Policy[];
  /** Sends payloads, causes the fault, and removes its cause. The damage is still to be repaired. */
  strike(scene: Scene): Promise<unknown>;
  readonly ends?: Ends;
  /** Options of the payload that is sent at the end. */
  readonly afterwards?: PayOptions;
  /**
   * Set if the policy `move` leaves the lane's lowest open transaction STUCK: the expected reason, the one action that
   * repairs it, and the result.
   */
  readonly stuck?: {
    readonly payload: number;
    readonly reason: RegExp;
    repair(scene: Scene, txId: string): Promise<unknown>;
    readonly ends?: Ends;
  };
}

export type Case = readonly [name: string, trouble: Trouble, policy: Policy];

const POLICIES: readonly Policy[] = ["heal", "move"];
/** Number of the payload that each test sends at the end. If the lane is intact, it is confirmed at once. */
const AFTERWARDS = 999;

export function casesOf(troubles: readonly Trouble[]): readonly Case[] {
  return troubles.flatMap((trouble) =>
    (trouble.policies ?? POLICIES).map((policy) => [`${trouble.name} (${policy})`, trouble, policy] as const),
  );
}

/** Returns the faults with these names, each with one hole policy. Throws for an unknown name. */
export function named(
  troubles: readonly Trouble[],
  wanted: readonly (readonly [name: string, policy: Policy])[],
): readonly Trouble[] {
  return wanted.map(([name, policy]) => {
    const found = troubles.find((trouble) => trouble.name === name);
    if (found === undefined) throw new Error(`there is no trouble called "${name}"`);
    return { ...found, policies: [policy] };
  });
}

/** Runs a fault from beginning to end, and checks what the contract promises afterwards. */
export async function endure(scene: Scene, { strike, stuck, ends = {}, afterwards }: Trouble): Promise<void> {
  await strike(scene);
  scene.chain.resume();
  const needsHands = stuck !== undefined && scene.policy === "move";
  if (needsHands) await repairOnce(scene, stuck);
  await scene.pay(AFTERWARDS, afterwards);
  await expectRest(scene, { ...ends, ...(needsHands ? stuck.ends : {}) });
  expect(await operatorSteps(scene), "steps an operator had to take").toBe(needsHands ? 1 : 0);
}

async function repairOnce(scene: Scene, { payload, reason, repair }: NonNullable<Trouble["stuck"]>): Promise<void> {
  await scene.untilAre("STUCK", payload);
  const { txId, history = [] } = await scene.view(payload);
  expect(history.findLast(({ event }) => event === "stick")?.reason).toMatch(reason);
  await repair(scene, txId);
}

async function expectRest(scene: Scene, ends: Ends): Promise<void> {
  const { database, chain } = scene;
  const settled = async () => (await settledPayloads(scene)) === scene.payloads.length;
  await scene.until(settled, "every payload is settled");
  const [{ count } = { count: 0 }] = await database.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM fencepost.transaction",
  );
  await untilSettled(database, count);
  await untilAtRest({ database, rpcUrl: chain.node.url }, count);
  for (const number of scene.payloads) await expectEnd(scene, number, ends[number] ?? "CONFIRMED");
  await expectNoHole(scene);
  await audit({ database, rpcUrl: chain.node.url, witnessed: scene.witnessed });
  expect(scene.tooEarly, "I6: on the wire before it was claimed").toEqual([]);
}

async function settledPayloads({ database }: Scene): Promise<number> {
  const rows = await database.query(
    "SELECT 1 FROM fencepost.transaction WHERE request_id LIKE 'payload-%' AND state IN ('CONFIRMED', 'FAILED_FINAL')",
  );
  return rows.length;
}

/**
 * Checks by the chain's own count that the payload was executed once if reported as confirmed, and never if reported as
 * failed.
 */
async function expectEnd(scene: Scene, number: number, end: string): Promise<void> {
  const view = await scene.view(number);
  expect(inWords(view), `payload ${number}`).toBe(end);
  const expected = end === "CONFIRMED" ? 1 : 0;
  expect(await executions(scene.chain.node, number), `payload ${number} was executed`).toBe(expected);
}

function inWords({ state, subState }: Transaction): string {
  return subState === null ? state : `${state}/${subState}`;
}

async function expectNoHole(scene: Scene): Promise<void> {
  expect(await scene.database.query("SELECT nonce FROM fencepost.hole"), "holes").toEqual([]);
  const mined = Number(await scene.chain.node.rpc("eth_getTransactionCount", [SIGNER, "latest"]));
  expect(mined, "I9: every nonce that was given is mined").toBe(await scene.nextNonce());
}

async function operatorSteps({ database }: Scene): Promise<number> {
  const rows = await database.query<{ steps: number }>(
    `SELECT (SELECT count(DISTINCT audit->>'decisionId') FROM fencepost.history WHERE actor LIKE 'operator:%')::int
          + (SELECT count(*) FROM fencepost.lane_decision WHERE actor LIKE 'operator:%')::int AS steps`,
  );
  return rows[0]?.steps ?? 0;
}
