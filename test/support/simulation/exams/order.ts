import { FencepostError } from "../../../../src/domain/errors.ts";
import type { Address } from "../../../../src/domain/lane.ts";
import { BatchRefused, StoreUnavailable } from "../../../../src/ports/lane-store.ts";
import { CHAIN_ID } from "../../world.ts";
import { PAYER_ALONE } from "../clerks.ts";
import { PAYER } from "../payers.ts";
import { type Answer, type Desk, LIMIT_OF_QUEUE, STRANGERS } from "./desk.ts";

/** Creates of a signer that come one after the other get their nonces in that order, however long look-ups take. */
export async function keepSequence(desk: Desk): Promise<void> {
  const { world, dice, node } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  await desk.rest();
  const { store } = node;
  const find = store.findByRequestIds.bind(store);
  const fails = dice.chance(0.4);
  let looks = 0;
  store.findByRequestIds = async (asked) => {
    if (++looks > 1) return find(asked);
    await world.clock.sleep(dice.int(60, 200));
    if (fails) throw new StoreUnavailable("the database is away");
    return find(asked);
  };
  const series = dice.int(1, 1_000_000_000);
  const answers: Promise<Answer | null>[] = [];
  for (let n = 1; n <= 3; n++) {
    answers.push(desk.single(desk.transfer(signer, { gas: undefined }, { requestId: `in order ${series} ${n}` })));
    await world.clock.sleep(20);
  }
  const [first = null, ...later] = await Promise.all(answers);
  store.findByRequestIds = find;
  if (fails) desk.expectRefused(first, "UNAVAILABLE", "a create that could not be looked up");
  let last = fails || first === null || first instanceof FencepostError ? -1 : (first.nonce ?? -1);
  if (!fails) desk.expectNew(first, "the first create");
  for (const answer of later) {
    if (!desk.expectNew(answer, "a later create")) continue;
    if ((answer.nonce ?? 0) < last) desk.wrong(`nonce ${answer.nonce} was given after ${last} to a later create`);
    last = answer.nonce ?? 0;
  }
}

/** A request id that the database cannot store is refused for good. */
export async function nameBadly(desk: Desk): Promise<void> {
  const { dice, node } = desk;
  const { store } = node;
  const find = store.findByRequestIds.bind(store);
  store.findByRequestIds = async (asked) => {
    const isBad = asked.some(({ requestIds }) => requestIds.some((each) => each.startsWith("unstorable")));
    if (isBad) throw new BatchRefused("invalid text");
    return find(asked);
  };
  const requestId = `unstorable ${dice.int(1, 1_000_000_000)}`;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  const answer = await desk.single(desk.transfer(signer, { gas: undefined }, { requestId }));
  store.findByRequestIds = find;
  desk.expectRefused(answer, "INVALID_REQUEST", "a request id that the database cannot store");
}

/** The owner's commit takes so long that it is asked twice: it makes one transaction, and calls it new. */
export async function commitSlowly(desk: Desk): Promise<void> {
  const { world, dice, crew } = desk;
  const others = crew.up();
  if (others.length === 0) return;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  desk.expectNew(await desk.single(desk.transfer(signer), { at: dice.pick(others) }), "a create at another node");
  desk.beforeCommit = async (writes) => {
    if (!writes.some(({ kind }) => kind === "allocate")) return;
    desk.beforeCommit = () => undefined;
    await world.clock.sleep(dice.int(2_100, 2_800));
  };
  const requestId = `slow ${dice.int(1, 1_000_000_000)}`;
  const request = desk.transfer(signer, {}, dice.chance(0.5) ? { requestId } : {});
  desk.expectNew(await desk.single(request, { at: dice.pick(others) }), "a create whose commit is slow");
  desk.beforeCommit = () => undefined;
}

/** While more callers wait than a node can read, it still sends what it has accepted. */
export async function keepSending(desk: Desk): Promise<void> {
  const { world, dice, node } = desk;
  await desk.rest();
  node.node.reception.waiting = dice.int(1, 50);
  const made = await desk.single(desk.transfer(dice.pick(STRANGERS.slice(0, 5))));
  if (desk.expectNew(made, "a create while others wait"))
    await desk.reach(
      () => world.rows().some(({ txId, receipt }) => txId === made.txId && receipt !== null),
      "a receipt",
    );
  node.node.reception.waiting = 0;
}

/** What waits for approval has no place in its key's share. */
export async function awaitApproval(desk: Desk): Promise<void> {
  const { dice } = desk;
  const limits = { signers: null, chains: null, queueShare: 1 / LIMIT_OF_QUEUE };
  const signer = dice.pick(STRANGERS.slice(0, 5));
  for (let n = 1; n <= 3; n++) {
    const request = desk.transfer(signer, {
      value: String(PAYER_ALONE + BigInt(dice.int(1, 1_000_000) * 1_000 + n * 10)),
    });
    const answer = await desk.single(request, { owner: PAYER, limits });
    if (desk.expectNew(answer, "a create that waits for approval") && answer.nonce !== null)
      desk.wrong(`nonce ${answer.nonce} was given before an approval`);
  }
  // Nobody approves it in time.
  await desk.world.clock.sleep(3_000);
}

/** Within this time after its bytes arrive, in ms, the hash of what a chain's node has signed is stored. */
const STORED_WITHIN_MS = 100;

/** A hash that only the chain's node could know is stored at once: until then, a crash loses it. */
export async function storeHash(desk: Desk): Promise<void> {
  const { world } = desk;
  const signer: Address = `0x${"d".repeat(39)}f`;
  world.chain.holdKeys(signer);
  const holder = desk.hire({ signers: [], nodeSigners: [signer] });
  await holder.node.start();
  await world.clock.sleep(1_500);
  const made = await desk.single(desk.transfer(signer), { at: holder });
  if (desk.expectNew(made, "a create of a chain's node")) {
    const isAtChain = () =>
      world.chain.pool.entry(signer, made.nonce ?? 0) !== null || world.chain.account(signer).nonce > 0;
    await desk.reach(isAtChain, "the chain");
    await world.clock.sleep(STORED_WITHIN_MS);
    const row = world.rows().find(({ txId }) => txId === made.txId);
    if (row?.attempts.some(({ txHash }) => txHash !== null) !== true) desk.wrong("a hash was not stored at once");
  }
  await desk.rest();
  await holder.node.close();
}

/** Depth from which no reorg is looked for any more in a simulation, in blocks. */
const WATCHED_BLOCKS = 64;
/** Time in ms after which a node without faults has noted the end of a watch. */
const NOTED_WITHIN_MS = 12_000;

/** What is deep enough is not watched for reorgs any more, however many watches end at the same time. */
export async function endWatches(desk: Desk): Promise<void> {
  const { world, dice } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  for (let n = 0; n < 2; n++) {
    desk.expectNew(await desk.single(desk.transfer(signer)), "a create");
    await desk.rest();
  }
  for (let mined = 0; mined < 2 * WATCHED_BLOCKS; mined += 8) {
    world.chain.mine(8);
    await world.clock.sleep(300);
  }
  await world.clock.sleep(NOTED_WITHIN_MS);
  const left = [...(world.database.state.lane({ chainId: CHAIN_ID, signer })?.ledger.live.every(0) ?? [])];
  if (left.length > 0) desk.wrong(`${left.length} transactions are watched for ever`);
}

/** Time in ms, after a node has seen a block, within which a receipt of a stuck transaction is stored. */
const UNSTUCK_WITHIN_MS = 100;

/** A transaction that was reported as stuck is reported as mined at once. */
export async function unstick(desk: Desk): Promise<void> {
  const { world, dice } = desk;
  const signer: Address = `0x${"d".repeat(39)}e`;
  let seenMs: number | null = null;
  const patient = desk.hire({
    signers: [signer],
    settings: { ...world.settings, stuckAfterMs: 2_000, resubmitIntervalMs: 1_000 },
    onEvent: ({ type }) => {
      if (type === "chain.head" && !isHeld) seenMs ??= world.clock.monotonicMs();
    },
  });
  let isHeld = true;
  await patient.node.start();
  await world.clock.sleep(1_500);
  await desk.rest();
  world.holdBlocks();
  const made = await desk.single(desk.transfer(signer), { at: patient });
  const rowOf = () => world.rows().find(({ txId }) => made !== null && "txId" in made && txId === made.txId);
  if (desk.expectNew(made, "a create without blocks"))
    await desk.reach(() => rowOf()?.state === "STUCK", "a stuck transaction");
  await world.clock.sleep(dice.int(0, 500));
  isHeld = false;
  world.chain.mine();
  await desk.reach(() => seenMs !== null, "a new block");
  await world.clock.sleep(UNSTUCK_WITHIN_MS);
  if (rowOf()?.state === "STUCK") desk.wrong("a transaction that is mined is still reported as stuck");
  await desk.rest();
  await patient.node.close();
}
