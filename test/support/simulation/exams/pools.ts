import { type Desk, EXAM_POOL, STRANGERS } from "./desk.ts";

const POOLED = STRANGERS.slice(0, 3);
const SIGNER = { pool: EXAM_POOL };
/** Time in ms after which a node asks for the balances of a pool again. */
const KNOWN_FOR_MS = 15_500;

/** Requests that come together go to different signers of a pool. */
export async function spread(desk: Desk): Promise<void> {
  await desk.rest();
  const answers = await desk.batch(POOLED.map(() => desk.transfer(SIGNER)));
  const signers = answers.map((each) => (desk.expectNew(each, "a create of a pool") ? each.lane.signer : ""));
  // One of three may be between two owners.
  if (new Set(signers).size < 2) desk.wrong(`requests that came together went to ${signers.join()}`);
}

/** A request id that one signer of a pool has is known to the pool. */
export async function repeatThroughPool(desk: Desk): Promise<void> {
  const request = desk.transfer(desk.dice.pick(POOLED), {}, { requestId: `pooled ${desk.dice.int(1, 1_000_000_000)}` });
  const first = await desk.single(request);
  if (!desk.expectNew(first, "a create")) return;
  desk.expectSame(await desk.single({ ...request, signer: SIGNER }), first, "a repeat through a pool");
  const other = desk.transfer(SIGNER, {}, { requestId: request.requestId ?? null });
  desk.expectRefused(await desk.single(other), "REQUEST_ID_REUSED", "another payload through a pool");
}

/** The signer of a pool that can pay does, whatever was known of the others' money a moment ago. */
export async function findMoney(desk: Desk): Promise<void> {
  const { world, dice } = desk;
  await desk.rest();
  const balances = POOLED.map((signer) => world.chain.account(signer).balance);
  const rich = dice.int(0, POOLED.length - 1);
  const give = (to: number) => {
    for (const [at, signer] of POOLED.entries())
      world.chain.setBalance(signer, at === to ? (balances[at] as bigint) : 1n);
  };
  // A node asks for balances every fifteen seconds: in half of the exams it knows of the loss.
  give(rich);
  await world.clock.sleep(dice.pick([0, KNOWN_FOR_MS]));
  for (const to of [rich, (rich + 1) % POOLED.length, rich]) {
    give(to);
    const made = await desk.single(desk.transfer(SIGNER));
    if (desk.expectNew(made, "a create that one signer can pay for") && made.lane.signer !== POOLED[to])
      desk.wrong(`${made.lane.signer} was chosen, and has no money`);
    await desk.rest();
  }
  give(-1);
  const poor = await desk.single(desk.transfer(SIGNER));
  desk.expectRefused(poor, "INSUFFICIENT_FUNDS", "a create that nobody can pay for");
  for (const [at, signer] of POOLED.entries()) world.chain.setBalance(signer, balances[at] as bigint);
  desk.expectNew(await desk.single(desk.transfer(SIGNER)), "a create of a pool with new money");
}
