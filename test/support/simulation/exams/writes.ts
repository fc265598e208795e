import { FencepostError } from "../../../../src/domain/errors.ts";
import type { Address } from "../../../../src/domain/lane.ts";
import { StoreUnavailable } from "../../../../src/ports/lane-store.ts";
import { TO } from "../../world.ts";
import { type Answer, type Desk, LIMIT_OF_QUEUE, STRANGERS } from "./desk.ts";

/** Time in ms after which a create says that the database is busy, however long it stays so. */
const BUSY_AT_MOST_MS = 5_000;
const MANY_REFUSALS = 80;

/** One create that the database cannot store fails alone, for good, whatever it shares a transaction with. */
export async function poison(desk: Desk): Promise<void> {
  const { dice } = desk;
  const [first, second] = dice.chance(0.5) ? STRANGERS : [STRANGERS[0], STRANGERS[0]];
  if (first === undefined || second === undefined) return;
  const bad = dice.int(0, LIMIT_OF_QUEUE - 1);
  const requests = Array.from({ length: LIMIT_OF_QUEUE }, (_, at) =>
    desk.transfer(dice.pick([first, second]), {}, at === bad ? { metadata: { poison: true } } : {}),
  );
  desk.slowMs = dice.pick([0, 20]);
  const asked = dice.chance(0.5) ? desk.batch(requests) : Promise.all(requests.map((each) => desk.single(each)));
  const answers: readonly (Answer | null)[] = await asked;
  desk.slowMs = 0;
  for (const [at, answer] of answers.entries()) {
    if (at === bad) desk.expectRefused(answer, "INVALID_REQUEST", "what the database cannot store");
    else desk.expectNew(answer, "a create beside what the database cannot store");
  }
}

/** The database goes away while it is found out which create cannot be stored: nothing is called refused that was made. */
export async function poisonAndOutage(desk: Desk): Promise<void> {
  const { dice } = desk;
  const lanes = dice.chance(0.5) ? STRANGERS.slice(0, 3) : STRANGERS.slice(3, 4);
  const bad = dice.int(0, LIMIT_OF_QUEUE - 1);
  const requests = Array.from({ length: LIMIT_OF_QUEUE }, (_, at) =>
    desk.transfer(dice.pick(lanes), {}, at === bad ? { metadata: { poison: true } } : {}),
  );
  let left = dice.int(1, 5);
  desk.beforeCommit = (writes) => {
    if (!writes.some(({ kind }) => kind === "allocate") || --left > 0) return;
    if (left < -2) desk.beforeCommit = () => undefined;
    throw new StoreUnavailable("the database is away");
  };
  desk.slowMs = 20;
  if (dice.chance(0.5)) await desk.batch(requests);
  else await Promise.all(requests.map((each) => desk.single(each)));
  desk.slowMs = 0;
  desk.beforeCommit = () => undefined;
  desk.expectNew(await desk.single(desk.transfer(lanes[0] ?? "")), "a create after an outage");
}

/** The node loses its lane while it is found out which create cannot be stored: each create is made once at most. */
export async function poisonAndLoss(desk: Desk): Promise<void> {
  const { world, dice, node } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  desk.expectNew(await desk.single(desk.transfer(signer)), "a create");
  const bad = dice.int(0, LIMIT_OF_QUEUE - 1);
  const requests = Array.from({ length: LIMIT_OF_QUEUE }, (_, at) =>
    desk.transfer(signer, {}, at === bad ? { metadata: { poison: true } } : {}),
  );
  const deputy = desk.hire({ signers: STRANGERS.slice(0, 5) });
  await deputy.node.start();
  await desk.reach(() => world.ownerOf(signer) !== undefined, "an owner");
  await world.clock.sleep(3_000);
  const owner = [node, deputy].find((each) => world.nodeIdOf(each) === world.ownerOf(signer)) ?? node;
  let left = dice.int(2, 5);
  desk.beforeCommit = async (writes) => {
    if (owner !== node || !writes.some(({ kind }) => kind === "allocate") || --left > 0) return;
    desk.beforeCommit = () => undefined;
    node.store.pause();
    await desk.reach(() => world.ownerOf(signer) !== ownerId, "another owner");
    node.store.resume();
  };
  const ownerId = world.ownerOf(signer);
  await desk.batch(requests);
  desk.beforeCommit = () => undefined;
  await world.clock.sleep(3_000);
  await deputy.node.close();
  await desk.reach(() => world.ownerOf(signer) === world.nodeIdOf(node), "the way back");
  desk.expectNew(await desk.single(desk.transfer(signer)), "a create after the lane came back");
}

/** A busy database is not asked for ever: the caller learns it within seconds. */
export async function busy(desk: Desk): Promise<void> {
  const { world, dice, node } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  await desk.rest();
  for (let n = 0; n < MANY_REFUSALS; n++) node.store.failNextCommit("busy");
  const beganMs = world.clock.monotonicMs();
  const answer = await desk.single(desk.transfer(signer));
  const ms = world.clock.monotonicMs() - beganMs;
  node.store.forgetFaults();
  desk.expectRefused(answer, "UNAVAILABLE", "a create while the database is busy");
  if (ms > BUSY_AT_MOST_MS) desk.wrong(`a busy database kept a caller for ${ms} ms`);
  desk.expectNew(await desk.single(desk.transfer(signer)), "a create after the database was busy");
}

/** A transaction fails, or its answer is lost, while more creates of the lane wait behind it: all are answered. */
export async function failWhileOthersWait(desk: Desk): Promise<void> {
  const { world, dice, node } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  await desk.rest();
  const isLost = dice.chance(0.5);
  desk.beforeCommit = async (writes) => {
    if (!writes.some(({ kind }) => kind === "allocate")) return;
    desk.beforeCommit = () => undefined;
    await world.clock.sleep(150);
    if (isLost) node.store.failNextCommit(dice.pick(["unknown-committed", "unknown-lost"]));
    else throw new StoreUnavailable("the database is away");
  };
  const answers: Promise<Answer | null>[] = [];
  for (let n = 0; n < 4; n++) {
    answers.push(desk.single(desk.transfer(signer)));
    await world.clock.sleep(30);
  }
  for (const answer of await Promise.all(answers))
    if (answer instanceof FencepostError) desk.expectRefused(answer, "UNAVAILABLE", "a create during an outage");
  desk.beforeCommit = () => undefined;
  desk.expectNew(await desk.single(desk.transfer(signer)), "a create after an outage");
}

/** The database goes away before a batch is stored: what was refused or repeated before that is answered as such. */
export async function failPartly(desk: Desk): Promise<void> {
  const { dice } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  await desk.rest();
  const known = desk.transfer(signer, { gas: undefined }, { requestId: `known ${dice.int(1, 1_000_000_000)}` });
  const first = await desk.single(known);
  if (!desk.expectNew(first, "a create")) return;
  desk.beforeCommit = (writes) => {
    if (writes.some(({ kind }) => kind === "allocate")) throw new StoreUnavailable("the database is away");
  };
  const [repeat = null, refused = null, failed = null] = await desk.batch([
    known,
    desk.transfer(signer, { gas: 20_000 }),
    desk.transfer(signer),
  ]);
  desk.beforeCommit = () => undefined;
  desk.expectSame(repeat, first, "a repeat in a batch that cannot be stored");
  desk.expectRefused(refused, "GAS_TOO_LOW", "too little gas in a batch that cannot be stored");
  desk.expectRefused(failed, "UNAVAILABLE", "a create that cannot be stored");
}

const LOOK_UPS = 900;
/** A look-up of request ids has at most about a thousand, and what one request brings. */
const MOST_LOOKED_UP = 2_000;

/** Many request ids at once: no question to the database grows without limit. */
export async function lookUpMany(desk: Desk): Promise<void> {
  const { world, dice } = desk;
  const signer: Address = `0x${"d".repeat(39)}d`;
  const roomy = desk.hire({ signers: [signer], node: { queueLimit: 10_000 } });
  await roomy.node.start();
  await world.clock.sleep(1_500);
  const { store } = roomy;
  const find = store.findByRequestIds.bind(store);
  let largest = 0;
  store.findByRequestIds = (asked) => {
    largest = Math.max(largest, asked.flatMap(({ requestIds }) => requestIds).length);
    return find(asked);
  };
  const series = dice.int(1, 1_000_000);
  const lookUp = (n: number) =>
    roomy.node.api.createBatch(
      Array.from({ length: LOOK_UPS }, (_, at) => {
        return { signer, requestId: `many ${series} ${n} ${at}`, payload: { to: TO, gas: 20_000 } };
      }),
    );
  await Promise.all([1, 2, 3].map(lookUp));
  store.findByRequestIds = find;
  await roomy.node.close();
  if (largest > MOST_LOOKED_UP) desk.wrong(`${largest} request ids were looked up at once`);
}
