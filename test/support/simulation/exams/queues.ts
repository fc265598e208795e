import { FencepostError } from "../../../../src/domain/errors.ts";
import { TO } from "../../world.ts";
import { type Answer, type Desk, LIMIT_OF_QUEUE, STRANGERS } from "./desk.ts";

/** Nodes accept this many times as many creates at once as a lane does. */
const LANES_PER_NODE = 4;
const ROUNDS = 5;

/** A lane takes as many creates at once as its queue has places, in order, and again when they are answered. */
export async function fillLane(desk: Desk): Promise<void> {
  const signer = desk.dice.pick(STRANGERS.slice(0, 5));
  let last: number | null = null;
  for (let round = 0; round < ROUNDS; round++) {
    const more = desk.dice.int(1, 3);
    const requests = Array.from({ length: LIMIT_OF_QUEUE + more }, () => desk.transfer(signer));
    const answers = await desk.batch(requests);
    for (const [at, answer] of answers.entries()) {
      if (at >= LIMIT_OF_QUEUE) desk.expectRefused(answer, "QUEUE_FULL", `create ${at + 1} at once`);
      else if (desk.expectNew(answer, `create ${at + 1} of a queue of ${LIMIT_OF_QUEUE}`)) {
        if (last !== null && answer.nonce !== last + 1) desk.wrong(`nonce ${answer.nonce} follows ${last}`);
        last = answer.nonce;
      }
    }
  }
}

/** A node takes a limited number of creates at once, of all lanes together. */
export async function fillNode(desk: Desk): Promise<void> {
  const all = STRANGERS.slice(0, 5).flatMap((signer) =>
    Array.from({ length: LIMIT_OF_QUEUE }, () => desk.transfer(signer)),
  );
  // Slow calls keep all of them under way at the same time.
  desk.slowMs = 100;
  const answers = await desk.batch(all);
  desk.slowMs = 0;
  const made = answers.filter((each) => each !== null && !(each instanceof FencepostError)).length;
  if (made !== LANES_PER_NODE * LIMIT_OF_QUEUE) desk.wrong(`a node took ${made} creates at once`);
  for (const each of answers)
    if (each instanceof FencepostError) desk.expectRefused(each, "QUEUE_FULL", "another create");
}

/** A key's share is taken by what has a nonce and is not mined: by no refusal, and by no repeat. */
export async function fillShare(desk: Desk): Promise<void> {
  const { world, dice } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  await desk.rest();
  world.holdBlocks();
  const how = { owner: `sharer ${dice.int(1, 1_000_000)}`, limits: { signers: null, chains: null, queueShare: 0.25 } };
  const most = LIMIT_OF_QUEUE / 4;
  const named = (n: number) => desk.transfer(signer, {}, { requestId: `${how.owner} ${n}` });
  for (let n = 0; n <= most; n++)
    desk.expectRefused(
      await desk.single(desk.transfer(signer, { to: TO, gas: 20_000 }), how),
      "GAS_TOO_LOW",
      "little gas",
    );
  const requests = Array.from({ length: most }, (_, n) => named(n));
  const first: (Answer | null)[] = [];
  for (const request of requests) {
    const answer = await desk.single(request, how);
    desk.expectNew(answer, `create ${first.length + 1} of a share of ${most}`);
    first.push(answer);
    for (let again = 0; again < most; again++)
      desk.expectSame(await desk.single(requests[0] as (typeof requests)[number], how), first[0] ?? null, "a repeat");
  }
  desk.expectRefused(await desk.single(named(most), how), "QUOTA_EXCEEDED", "a create beyond the share");
  await desk.rest();
  desk.expectNew(await desk.single(named(most + 1), how), "a create after the share was mined");
}
