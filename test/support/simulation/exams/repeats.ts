import { FencepostError } from "../../../../src/domain/errors.ts";
import { type Desk, EXAM_POOL, STRANGERS } from "./desk.ts";

const CALLS = ["simulate", "simulateEverywhere", "feeMarket", "balance"] as const;

/** What was accepted is answered at once to whoever repeats it, and costs no call to the chain. */
export async function repeatLater(desk: Desk): Promise<void> {
  const { dice, node, crew } = desk;
  await desk.rest();
  const signer = dice.chance(0.3) ? { pool: EXAM_POOL } : dice.pick(STRANGERS.slice(0, 5));
  const isPooled = typeof signer === "object";
  const request = desk.transfer(signer, { gas: undefined }, { requestId: `again ${dice.int(1, 1_000_000_000)}` });
  const first = await desk.single(request);
  if (!desk.expectNew(first, "a create")) return;
  await desk.rest();
  const calls = countCalls(desk);
  desk.expectSame(await desk.single(request), first, "a repeat");
  if (!isPooled && calls() > 0) desk.wrong(`a repeat cost ${calls()} calls to the chain`);
  const ends = [node.faults, desk.second].map((faults) => faults.inject({ kind: "unavailable" }));
  desk.expectSame(await desk.single(request), first, "a repeat while the chain is silent");
  for (const end of ends) end();
  const others = crew.up();
  if (others.length > 0 && !isPooled)
    desk.expectSame(await desk.single(request, { at: dice.pick(others) }), first, "a repeat at another node");
  if (!isPooled) return;
  const direct = { ...request, signer: first.lane.signer };
  desk.expectSame(await desk.single(direct), first, "a repeat that names the signer");
}

function countCalls({ node: { rpc } }: Desk): () => number {
  let calls = 0;
  for (const name of CALLS) {
    const call = rpc[name].bind(rpc) as (...given: unknown[]) => unknown;
    const counted = (...given: unknown[]) => {
      if (name.startsWith("simulate")) calls++;
      return call(...given);
    };
    Object.assign(rpc, { [name]: counted });
  }
  return () => calls;
}

/**
 * The same create twice at the same time. An endpoint refuses the second one, because what the first one spends is
 * missing by then: the second is a repeat all the same.
 */
export async function askTwiceAtOnce(desk: Desk): Promise<void> {
  const { world, dice, node } = desk;
  await desk.rest();
  const signer = dice.chance(0.5) ? { pool: EXAM_POOL } : dice.pick(STRANGERS.slice(0, 5));
  const request = desk.transfer(signer, { gas: undefined }, { requestId: `twin ${dice.int(1, 1_000_000_000)}` });
  const simulate = node.rpc.simulate.bind(node.rpc);
  let calls = 0;
  const isRefused = dice.chance(0.7);
  node.rpc.simulate = async (call) => {
    if (++calls === 1) return simulate(call);
    await world.clock.sleep(200);
    if (!isRefused) return simulate(call);
    return { outcome: "revert", revert: { name: null, message: "spent", data: "0x" } };
  };
  const first = desk.single(request);
  const second = desk.single(request);
  const answers = [await first, await second];
  node.rpc.simulate = simulate;
  const made = answers.filter(
    (each) => each !== null && !(each instanceof FencepostError) && each.outcome === "created",
  );
  if (made.length !== 1) desk.wrong(`of two equal creates at once, ${made.length} were new: ${answers.join()}`);
  desk.expectSame(answers.find((each) => each !== made[0]) ?? null, made[0] ?? null, "the other of two equal creates");
}

/** A create that names its nonce is its own request id. */
export async function repeatAtNonce(desk: Desk): Promise<void> {
  const signer = desk.dice.pick(STRANGERS.slice(0, 5));
  const before = await desk.single(desk.transfer(signer));
  if (!desk.expectNew(before, "a create")) return;
  const request = desk.transfer(signer, {}, { nonce: (before.nonce ?? 0) + 1 });
  const first = await desk.single(request);
  if (!desk.expectNew(first, "a create at the next nonce")) return;
  desk.expectSame(await desk.single(request), first, "a repeat at a nonce");
  desk.expectRefused(
    await desk.single(desk.transfer(signer, {}, { nonce: first.nonce ?? 0 })),
    "CONFLICT",
    "another create at a nonce that is taken",
  );
}

/** A create whose answer is lost between two nodes is made once, and called new. */
export async function loseReply(desk: Desk): Promise<void> {
  const { world, dice, crew } = desk;
  const others = crew.up();
  if (others.length === 0) return;
  await desk.rest();
  const at = dice.pick(others);
  const signer = dice.pick(STRANGERS.slice(0, 5));
  // What it spends is missing when it is asked for again.
  const value = String((world.chain.account(signer).balance * 6n) / 10n + BigInt(dice.int(1, 1_000_000) * 10));
  const isRich = dice.chance(0.5);
  const request = desk.transfer(signer, isRich ? { value, gas: undefined } : {});
  desk.expectNew(await desk.single(desk.transfer(signer), { at }), "a create at another node");
  await desk.rest();
  const isUnanswered = dice.chance(0.3);
  if (isUnanswered) world.network.slow(desk.node.url, 3_500);
  else world.network.inject("lostReply");
  const answer = await desk.single(request, { at });
  world.network.heal(desk.node.url);
  if (!isUnanswered) desk.expectNew(answer, "a create whose first answer was lost");
  await world.clock.sleep(5_000);
}
