import { FencepostError } from "../../../../src/domain/errors.ts";
import { laneKey } from "../../../../src/domain/lane.ts";
import { CHAIN_ID, TO } from "../../world.ts";
import { type Answer, type Desk, STRANGERS } from "./desk.ts";

/** A node comes, takes its part of the lanes, and leaves: no create fails meanwhile, whoever is asked. */
export async function handOver(desk: Desk): Promise<void> {
  const { world, dice, node, crew } = desk;
  const deputy = desk.hire({ signers: STRANGERS.slice(0, 5) });
  const known = node.events.length;
  const answers: Promise<Answer | null>[] = [];
  const ask = async (count: number, mostMs: number) => {
    for (let n = 0; n < count; n++) {
      const at = dice.pick([node, ...crew.up()]);
      answers.push(desk.single(desk.transfer(dice.pick(STRANGERS.slice(0, 5))), { at }));
      await world.clock.sleep(dice.int(1, mostMs));
    }
  };
  desk.slowMs = dice.pick([0, 20, 40]);
  await deputy.node.start();
  await ask(5, 100);
  await ask(15, 20);
  await world.clock.sleep(1_000);
  const asking = ask(15, 10);
  await deputy.node.close();
  await asking;
  for (const answer of await Promise.all(answers)) desk.expectNew(answer, "a create during a hand-over");
  desk.slowMs = 0;
  const fenced = [...node.events.slice(known), ...deputy.events].filter(({ type }) => type === "lease.fenced");
  if (fenced.length > 0) desk.wrong(`${fenced.length} writes were fenced in a hand-over`);
}

/**
 * A node inside another process acts for a signer: it takes no request from outside, so requests wait for it in the
 * database.
 */
export async function askEmbedded(desk: Desk): Promise<void> {
  const { world, dice, crew } = desk;
  const signer = STRANGERS.at(-1) as (typeof STRANGERS)[number];
  const embedded = desk.hire({ embedded: true, signers: [signer] });
  await embedded.node.start();
  await desk.reach(() => world.ownerOf(signer) !== undefined, "an embedded owner");
  await world.clock.sleep(1_500);
  const at = dice.pick([desk.node, ...crew.up()]);
  const request = desk.transfer(signer, {}, { requestId: `embedded ${dice.int(1, 1_000_000_000)}` });
  const first = await desk.single(request, { at });
  if (!desk.expectNew(first, "a create for an embedded node")) return;
  const left = countWaiting(desk);
  desk.expectSame(await desk.single(request, { at }), first, "a repeat for an embedded node");
  if (left() > 0) desk.wrong("a repeat waited for the embedded node, though the database knows the answer");
  await sendAstray(desk, signer);
  if (dice.chance(0.5)) await loseLane(desk, signer);
  else await desk.rest();
  await embedded.node.close();
}

/** Counts the requests that are written for other nodes from now on. */
function countWaiting({ world }: Desk): () => number {
  let written = 0;
  for (const { store } of world.nodes) {
    const leave = store.leaveRequests.bind(store);
    store.leaveRequests = (requests, forMs) => {
      written += requests.length;
      return leave(requests, forMs);
    };
  }
  return () => written;
}

/** A waiting request that is for another signer than its row says makes nothing. */
async function sendAstray(desk: Desk, signer: (typeof STRANGERS)[number]): Promise<void> {
  const { world, dice, node } = desk;
  const lane = { chainId: CHAIN_ID, signer: STRANGERS[dice.int(0, 4)] as (typeof STRANGERS)[number] };
  const payload = { to: TO, value: String(490_000_000 + dice.int(1, 1_000_000) * 10), gas: 21_000 };
  const fees = { maxFeePerGas: "4000000000", maxPriorityFeePerGas: "1000000000" };
  const other = { chainId: CHAIN_ID, signer: STRANGERS.find((each) => each !== lane.signer && each !== signer) };
  const txId = `019b76da-0000-7000-8000-${String(dice.int(1, 999_999_999)).padStart(12, "0")}`;
  const body = { creates: [{ txId, request: { ...other, payload: { ...payload, ...fees } } }] };
  const leftId = `019b76da-0000-7000-9000-${String(dice.int(1, 999_999_999)).padStart(12, "0")}`;
  const request = { leftId, lane, action: "create", body: JSON.stringify(body), owner: null, repeatable: true };
  await node.store.leaveRequests([request], 5_000);
  await world.clock.sleep(3_000);
  const made = world.rows().find((row) => row.txId === txId);
  if (made !== undefined) desk.wrong(`a request for ${laneKey(lane)} made a transaction of ${made.lane.signer}`);
}

/** The embedded node is paused while a create waits, and another one takes its signer over: it is made once. */
async function loseLane(desk: Desk, signer: (typeof STRANGERS)[number]): Promise<void> {
  const { world, dice } = desk;
  const embedded = world.nodes.find((entry) => world.nodeIdOf(entry) === world.ownerOf(signer));
  if (embedded === undefined) return;
  const next = desk.hire({ embedded: true, signers: [signer] });
  await next.node.start();
  const { store } = embedded;
  const commit = store.commit.bind(store);
  let left = dice.int(1, 2);
  store.commit = async (writes) => {
    if (writes.some(({ kind }) => kind === "allocate") && --left === 0) {
      store.pause();
      world.clock.after(dice.int(2_500, 4_000), () => store.resume());
    }
    return commit(writes);
  };
  const requests = [1, 2, 3].map((n) => desk.transfer(signer, {}, n === 2 ? { metadata: { poison: true } } : {}));
  for (const answer of await desk.batch(requests))
    if (answer instanceof FencepostError && answer.code === "NOT_LEADER")
      desk.wrong("a create was refused because its embedded owner changed");
  await world.clock.sleep(8_000);
  await desk.rest();
  await next.node.close();
}

/** Time in ms within which a node that shuts down alone refuses a create. */
const REFUSED_WITHIN_MS = 500;

/** The last node that runs shuts down: it refuses creates at once, and finishes what it has. */
export async function closeAlone(desk: Desk): Promise<void> {
  const { world, dice, node, crew } = desk;
  crew.crashAll();
  // Until every other node is known to be dead.
  await world.clock.sleep(6_000);
  const signer = dice.pick(STRANGERS.slice(0, 5));
  desk.expectNew(await desk.single(desk.transfer(signer)), "a create of the only node");
  const requests = [1, 2, 3, 4].map(() => desk.transfer(signer));
  desk.slowMs = 40;
  const before = requests.slice(0, 2).map((each) => desk.single(each));
  const closing = node.node.close();
  const beganMs = world.clock.monotonicMs();
  const later = await Promise.all(requests.slice(2).map((each) => desk.single(each)));
  const ms = world.clock.monotonicMs() - beganMs;
  for (const answer of later) desk.expectRefused(answer, "UNAVAILABLE", "a create of a node that shuts down alone");
  if (ms > REFUSED_WITHIN_MS) desk.wrong(`a node that shuts down alone kept a caller for ${ms} ms`);
  await Promise.all(before);
  await closing;
  crew.start();
  const next = desk.hire({ signers: STRANGERS.slice(0, 5) });
  await next.node.start();
}
