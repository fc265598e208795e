import { REPRICING_STRATEGIES } from "../../../src/domain/fees/repricing.ts";
import type { Address } from "../../../src/domain/lane.ts";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import type { Reservation } from "../../../src/domain/transaction/reservations.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { CompletionRecord } from "../../../src/ports/query-store.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import { waitingIntake } from "../../doubles/memory-store/state.ts";
import { GETH_POOL, ROOMY_POOL } from "../../doubles/simulated-chain/pool.ts";
import { CHAIN_ID, SIGNERS, World } from "../world.ts";
import { Callers, FURNACE, FURNACE_GAS, POOL, TRANSACTION_GAS_CAP } from "./callers.ts";
import { Clerks } from "./clerks.ts";
import { Consumer } from "./consumer.ts";
import { Crew, TAG_DEPTHS } from "./crew.ts";
import { Guests } from "./guests.ts";
import { Holders } from "./holders.ts";
import { Killers } from "./killers.ts";
import { Losses } from "./losses.ts";
import { USUAL_POLICIES } from "./message-kinds.ts";
import { Messages } from "./messages.ts";
import { Operators } from "./operators.ts";
import { Payers } from "./payers.ts";
import { Reservers } from "./reservers.ts";
import { Shadow } from "./shadow.ts";
import { beginningOf, SPENDING_POLICIES, TOKEN, TOKEN_GAS } from "./spend-kinds.ts";
import { Spenders } from "./spenders.ts";
import { REVERTER, Sticklers } from "./sticklers.ts";
import { Stops } from "./stops.ts";
import { Terms } from "./terms.ts";
import { Webhooks } from "./webhooks.ts";

const LEASE = { durationMs: 2_000, renewIntervalMs: 500, clockSkewMs: 200 };
const MOST_NODES = 3;
const GWEI = 1_000_000_000n;
const QUIET_LIMIT_MS = 600_000;
const FEE_SEEDS = 0x5eed_0000;
const RECEIPT_SEEDS = 0x0eed_0000;
const HEAD_SEEDS = 0x1eed_0000;
const TIME_SEEDS = 0x2eed_0000;
const STOP_SEEDS = 0x3eed_0000;
const WEBHOOK_SEEDS = 0x4eed_0000;
const MESSAGE_SEEDS = 0x6eed_0000;
const CLERK_SEEDS = 0x8eed_0000;
const CLOCK_SEEDS = 0x9eed_0000;
const SWARM_SEEDS = 0xaeed_0000;
const APART_SEEDS = 0xbeed_0000;
const LOSS_SEEDS = 0xceed_0000;
const SPEND_SEEDS = 0xdeed_0000;
const ECHO_SEEDS = 0xfeed_0000;
const NODE_KEY_SEEDS = 0x1ade_0000;
const STICKLER_SEEDS = 0x2ade_0000;
const GUEST_SEEDS = 0x3ade_0000;
const HAND_SEEDS = 0x4ade_0000;
const PRIVATE_SEEDS = 0x5ade_0000;
const LAPSE_SEEDS = 0x6ade_0000;

/** Shares of the seeds that have webhooks, and signatures of messages. Each takes time, so no seed must have all. */
const WITH_WEBHOOKS = 0.3;
const WITH_MESSAGES = 0.2;
const WITH_CLERKS = 0.25;
/** Of those without signatures, which have other policies. */
const WITH_SPENDERS = 0.3;
/** Of those without webhooks, signatures and spenders. */
const WITH_LOSSES = 0.2;
/** Of those without limits of keys. */
const WITH_STICKLERS = 0.4;
const WITH_GUESTS = 0.25;
/** Share of the seeds in which the chain's node holds the key of a signer, so that no node knows a hash before it sends. */
const WITH_NODE_KEYS = 0.25;
/** Of the other seeds: every node sends to a private endpoint first. */
const WITH_PRIVATE_SENDS = 0.15;
/** Share of the seeds in which some steps never happen and others often: what hides behind the usual mix. */
const SWARMS = 0.4;

/** How the chain's nodes treat nonces ahead of the next one. */
const FUTURE_NONCES = ["queue", "queue", "queue", "queue", "refuseGaps", "refuseUnmined"] as const;

/** Random choices with their weights, one of which is made at each step. */
const STEPS = [
  [10, "create"],
  [3, "intake"],
  [5, "reserve"],
  [6, "operate"],
  [0.5, "suspend"],
  [4, "fail commits"],
  [3, "fail calls"],
  [1, "refuse writes"],
  [1, "lose signer"],
  [2, "pause database"],
  [2, "cut database"],
  [2, "freeze node"],
  [1, "lie about nonce"],
  [1, "lie about gas"],
  [3, "trouble chain"],
  [1, "lag chain"],
  [3, "reorg"],
  [1, "drop mempool"],
  [2, "move market"],
  [1, "hold blocks"],
  [2, "release blocks"],
  [1, "crash now"],
  [9, "crash soon"],
  [1, "close node"],
  [1, "lose hints"],
  [1, "lose session"],
  [0.5, "end sessions"],
  [0.3, "change history"],
  [3, "start node"],
] as const;

type Step = (typeof STEPS)[number][1];

/** Names that a scenario may leave out: steps, and what else is drawn at each step. */
export const PARTS = [
  ...STEPS.map(([, step]) => step),
  ...(["lie about fees", "trust", "overpay", "lie about receipts", "invent blocks"] as const),
  ...(["hold", "kill", "jump clock", "webhooks", "messages", "clerks", "spenders", "sticklers", "guests"] as const),
  ...(["delay commit", "jump database clock", "partition", "lie about state", "lose commits"] as const),
] as const;
export type Part = (typeof PARTS)[number];

/** A run to be made: all random choices come from the seed. A failing one is shrunk by fewer steps and parts. */
export interface Scenario {
  readonly seed: number;
  /** Most steps; the rest of those that the seed has are left out. */
  readonly most?: number;
  readonly without?: readonly Part[];
}

/** Reports what happens, with the virtual time in milliseconds. */
export type Trace = (atMs: number, line: string) => void;

export interface Simulation {
  readonly world: World;
  readonly callers: Callers;
  readonly reservers: Reservers;
  readonly operators: Operators;
  readonly payers: Payers;
  readonly holders: Holders;
  readonly killers: Killers;
  readonly clerks: Clerks;
  readonly stops: Stops;
  readonly terms: Terms;
  /** Null in a simulation whose database keeps everything that it acknowledges. */
  readonly losses: Losses | null;
  readonly consumer: Consumer;
  readonly crew: Crew;
  /** Null in a simulation without webhooks. */
  readonly webhooks: Webhooks | null;
  /** Null in a simulation without signatures of messages. */
  readonly messages: Messages | null;
  /** Null in a simulation whose API keys have no limits. */
  readonly spenders: Spenders | null;
  /** Null in a simulation without callers who know their answers. */
  readonly sticklers: Sticklers | null;
  /** Null in a simulation without API keys that see only a part. */
  readonly guests: Guests | null;
  /** Null in a simulation whose database loses commits. */
  readonly shadow: Shadow | null;
}

/** Longest time between a commit and its effect on the memory of a node without faults. */
const ANSWERED_MS = 200;

/** Runs one seed: nodes, callers, a consumer, and faults, until everything is repaired and all work is done. */
export async function simulate(scenario: Scenario, trace?: Trace): Promise<Simulation> {
  const { seed, most = Number.POSITIVE_INFINITY, without = [] } = scenario;
  const has = (part: Part) => !without.includes(part);
  const weighted = weightsOf(new Dice(seed + SWARM_SEEDS));
  const clockDice = new Dice(seed + CLOCK_SEEDS);
  const apartDice = new Dice(seed + APART_SEEDS);
  const handDice = new Dice(seed + HAND_SEEDS);
  const dice = new Dice(seed);
  const messageDice = new Dice(seed + MESSAGE_SEEDS);
  const hasMessages = messageDice.chance(WITH_MESSAGES);
  const spendDice = new Dice(seed + SPEND_SEEDS);
  const hasSpenders = spendDice.chance(WITH_SPENDERS) && !hasMessages;
  const world = makeWorld(seed, dice, hasMessages ? USUAL_POLICIES : hasSpenders ? SPENDING_POLICIES : undefined);
  if (hasSpenders) world.clock.stepWallClock(beginningOf(spendDice));
  // Only for a trace: events are many, and to describe one takes longer than to emit it.
  if (trace !== undefined)
    world.onEvent = (nodeId, event) => trace(world.clock.monotonicMs(), `${nodeId}: ${described(event)}`);
  // False prices, false receipts, false newest blocks, deadlines and holds each have a separate random generator. So
  // they do not change the other random choices of a seed's run.
  const feeDice = new Dice(seed + FEE_SEEDS);
  const receiptDice = new Dice(seed + RECEIPT_SEEDS);
  const headDice = new Dice(seed + HEAD_SEEDS);
  const timeDice = new Dice(seed + TIME_SEEDS);
  const stopDice = new Dice(seed + STOP_SEEDS);
  const terms = new Terms(world, LEASE.durationMs);
  const stops = new Stops(world, terms);
  const webhookDice = new Dice(seed + WEBHOOK_SEEDS);
  const up = () => crew.up();
  const webhooks = webhookDice.chance(WITH_WEBHOOKS) ? new Webhooks(world, webhookDice, up) : null;
  const messages = hasMessages ? new Messages(world, { dice: messageDice, nodes: up, stops }) : null;
  const spenders = hasSpenders ? new Spenders(world, spendDice, up) : null;
  const optional = { receivers: webhooks?.receivers ?? null, messages };
  const slowness = dice.pick([0, 5, 60]);
  const isPrivate = world.nodeSigners.length === 0 && new Dice(seed + PRIVATE_SEEDS).chance(WITH_PRIVATE_SENDS);
  const crew: Crew = new Crew(world, dice, {
    slowness,
    isPrivate,
    feeDice,
    wireDice: stopDice,
    clockDice,
    lapseDice: new Dice(seed + LAPSE_SEEDS),
    stops,
    terms,
    ...optional,
  });
  const callers = new Callers(world, dice, crew.up, timeDice);
  const consumer = new Consumer(world, dice, crew.up);
  const lossDice = new Dice(seed + LOSS_SEEDS);
  const isPlain = webhooks === null && messages === null && spenders === null;
  const losses = lossDice.chance(WITH_LOSSES) && isPlain ? new Losses(world, lossDice) : null;
  const shadow = losses === null ? new Shadow(world, new Dice(seed + ECHO_SEEDS)) : null;
  const reservers = new Reservers(world, dice, crew.up);
  const operators = new Operators(world, dice, crew.up, stops);
  const payers = new Payers(world, feeDice, crew.up);
  const holders = new Holders(world, timeDice, crew.up, stops);
  const killers = new Killers(world, stopDice, crew.up, stops);
  const sticklerDice = new Dice(seed + STICKLER_SEEDS);
  const hasSticklers = sticklerDice.chance(WITH_STICKLERS) && !hasMessages && !hasSpenders && losses === null;
  const sticklers = hasSticklers ? new Sticklers(world, sticklerDice, up, crew) : null;
  const guestDice = new Dice(seed + GUEST_SEEDS);
  const guests = guestDice.chance(WITH_GUESTS) && losses === null ? new Guests(world, guestDice, up) : null;
  const clerkDice = new Dice(seed + CLERK_SEEDS);
  const clerks = new Clerks(world, clerkDice, up);
  const actors = { callers, reservers, operators, payers, holders, killers, clerks };
  const hasClerks = clerkDice.chance(WITH_CLERKS);
  const watches = { stops, terms, losses, consumer, shadow };
  const simulation = { world, ...actors, ...watches, crew, webhooks, messages, spenders, sticklers, guests };
  const nodes = dice.int(1, MOST_NODES);
  for (let i = 0; i < nodes; i++) crew.start();
  void consumer.follow();
  const steps = Math.min(dice.int(15, 50), most);
  const take = stepsOf(simulation, dice);
  for (let count = 1; count <= steps; count++) {
    const step = dice.weighted(weighted);
    void crew.dearest;
    trace?.(world.clock.monotonicMs(), `step ${count}: ${step}${has(step) ? "" : " (left out)"}`);
    if (has(step)) take[step]();
    startLying(simulation, feeDice, has);
    if (receiptDice.chance(0.04) && has("lie about receipts")) crew.lieAboutReceipts(receiptDice);
    if (headDice.chance(0.04) && has("invent blocks")) crew.inventBlocks(headDice);
    if (timeDice.chance(0.12) && has("hold")) holders.hold();
    if (stopDice.chance(0.05) && has("kill")) killers.kill();
    if (clockDice.chance(0.04) && has("jump clock")) crew.jumpClock();
    if (apartDice.chance(0.06) && has("delay commit")) crew.delayCommit(apartDice);
    // The checks of deliveries and signatures compare deadlines with the database's clock.
    if (apartDice.chance(0.03) && isPlain && has("jump database clock")) crew.jumpDatabaseClock(apartDice);
    if (losses?.step() === true && has("lose commits")) changeHistory(simulation, true);
    if (apartDice.chance(0.06) && has("partition")) crew.partition(apartDice);
    if (handDice.chance(0.03) && has("close node")) crew.close(handDice);
    if (apartDice.chance(0.06) && has("lie about state")) crew.lieAboutState(apartDice);
    if (has("webhooks")) webhooks?.step(crew);
    if (has("messages")) messages?.step(crew);
    if (has("spenders")) spenders?.step();
    if (has("sticklers")) sticklers?.step();
    if (has("guests")) guests?.step();
    const hasClerksNow = hasClerks && has("clerks");
    if (hasClerksNow && clerkDice.chance(0.15)) clerks.read();
    if (hasClerksNow && clerkDice.chance(0.05)) clerks.act();
    if (hasClerksNow && clerkDice.chance(hasMessages ? 0.15 : 0.02)) clerks.decide();
    await world.clock.advance(dice.int(0, 700));
  }
  trace?.(world.clock.monotonicMs(), "everything is repaired");
  crew.heal();
  webhooks?.heal();
  world.releaseBlocks();
  world.chain.setBaseFee(GWEI);
  await comeToRest(simulation);
  await world.clock.advance(10_000);
  // A node repairs holes also at rest. Its memory follows a commit only after the answer, which takes some time.
  await world.until(() => world.clock.monotonicMs() - crew.lastCommitMs > ANSWERED_MS);
  return simulation;
}

/** The usual weights of the steps, or others for a swarm. Requests are made and nodes are started in any seed. */
function weightsOf(dice: Dice): readonly (readonly [weight: number, step: Step])[] {
  if (!dice.chance(SWARMS)) return STEPS;
  return STEPS.map(([weight, step]) => {
    const factor = dice.pick([0, 0, 1, 1, 3]);
    return [step === "create" || step === "start node" ? weight : weight * factor, step];
  });
}

async function comeToRest(simulation: Simulation): Promise<void> {
  try {
    await simulation.world.until(() => isAtRest(simulation), QUIET_LIMIT_MS);
  } catch (error) {
    throw new Error(`nothing is broken any more, and yet:\n${unrest(simulation).join("\n")}`, { cause: error });
  }
}

function makeWorld(seed: number, dice: Dice, policies: Policies | undefined): World {
  const feeDice = new Dice(seed - FEE_SEEDS);
  const keyDice = new Dice(seed + NODE_KEY_SEEDS);
  const nodeSigners = keyDice.chance(WITH_NODE_KEYS) ? SIGNERS.slice(2) : [];
  const world = new World({
    seed,
    nodeSigners,
    hints: dice.chance(0.5),
    sessionLocks: dice.chance(0.7),
    settings: {
      confirmations: dice.int(0, 5),
      resubmitIntervalMs: dice.int(1_000, 5_000),
      repricing: dice.pick([null, REPRICING_STRATEGIES.on, REPRICING_STRATEGIES.on, REPRICING_STRATEGIES.linear]),
      maxAttempts: dice.pick([0, 0, 3]),
      stuckAfterMs: dice.pick([5_000, 30_000, 1_800_000]),
      staleReceiptTimeoutMs: 5_000,
      grayZoneTimeoutMs: keyDice.pick([4_000, 30_000]),
      grayZoneIntervalMs: 1_000,
      publicAfterMs: keyDice.pick([null, 3_000, 15_000]),
      inFlightWindow: dice.pick([2, 8, 64]),
      nonceStateTimeoutMs: dice.pick([0, 1_000, 30_000]),
      blockQueueLength: dice.pick([1, 1_000]),
      fetchReceiptUponEntry: dice.chance(0.2),
      // Fee ceilings are above what callers offer; some are below the market's peak.
      maxFeeWei: feeDice.pick([null, null, 25n * GWEI, 120n * GWEI]),
      maxGasCostWei: feeDice.pick([null, null, 21_000n * 40n * GWEI]),
      // Reservations may expire while no node runs, and leave unused nonces (holes). So holes must be repaired
      // automatically.
      holePolicy: "heal",
      expiredReservations: feeDice.pick(["placeholder", "placeholder", "hole"]),
      maxReservationRepairs: 100_000,
      maxReservations: feeDice.pick([2, 16]),
      finality: dice.weighted([
        [8, "confirmations" as const],
        [1, "safe" as const],
        [1, "finalized" as const],
      ]),
    },
    node: {
      pools: new Map([[POOL, SIGNERS.filter((signer) => !nodeSigners.includes(signer))]]),
      lease: LEASE,
      writer: { batchSize: dice.pick([1, 4, 200]), batchTimeoutMs: 2, shards: dice.pick([1, 256]) },
      queueLimit: dice.pick([5, 10_000]),
    },
    ...(policies === undefined ? {} : { policies }),
    chain: {
      pool: { ...dice.pick([GETH_POOL, ROOMY_POOL]), futureNonces: keyDice.pick(FUTURE_NONCES) },
      refuseUnderBaseFee: keyDice.chance(0.15),
      tagDepths: TAG_DEPTHS,
      transactionGasCap: TRANSACTION_GAS_CAP,
    },
  });
  world.chain.burnGasAt(FURNACE, FURNACE_GAS);
  world.chain.burnGasAt(TOKEN, TOKEN_GAS);
  world.chain.revertCallsTo(REVERTER, "0x");
  world.chain.mine(10);
  // Whether a mined transaction reverts must depend only on its payload, so that a reorg does not change it.
  world.chain.revertMined(({ value }) => value % 10n === 3n);
  return world;
}

function stepsOf(simulation: Simulation, dice: Dice): Readonly<Record<Step, () => void>> {
  const { world, callers, reservers, operators, crew } = simulation;
  return {
    create: () => callers.call(dice.int(1, 8)),
    intake: () => callers.writeIntake(),
    reserve: () => reservers.reserve(),
    operate: () => operators.act(),
    suspend: () => operators.suspend(),
    "fail commits": () => crew.failCommits(),
    "fail calls": () => crew.failCalls(),
    "refuse writes": () => crew.refuseWrites(),
    "lose signer": () => crew.loseSigner(2 * LEASE.durationMs),
    "pause database": () => crew.pauseStore(2 * LEASE.durationMs),
    "cut database": () => crew.cutStore(2 * LEASE.durationMs),
    "freeze node": () => crew.freeze(2 * LEASE.durationMs),
    "lie about nonce": () => crew.lieAboutNonce(),
    "lie about gas": () => crew.lieAboutGas(),
    "trouble chain": () => crew.troubleChain(),
    "lag chain": () => crew.lagChain(),
    reorg: () => reorganise(world, crew, dice),
    "drop mempool": () => world.chain.dropAllTransactions(),
    "move market": () => moveMarket(world, crew, dice),
    "hold blocks": () => world.holdBlocks(),
    "release blocks": () => world.releaseBlocks(),
    "crash now": () => crew.crashNow(),
    "crash soon": () => crew.crashSoon(),
    "close node": () => crew.close(),
    "lose hints": () => crew.loseHints(),
    "lose session": () => crew.loseSession(),
    "end sessions": () => crew.endSessions(),
    "change history": () => changeHistory(simulation, dice.chance(0.3)),
    "start node": () => crew.alive < MOST_NODES && crew.start(),
  };
}

/** An event as one line: its type, and every field that is not long. */
function described({ type, ...fields }: TelemetryEvent): string {
  const words = Object.entries(fields).map(([name, value]) => {
    const text = typeof value === "object" ? JSON.stringify(value, (_, each) => plain(each)) : String(value);
    return text.length > 80 ? "" : ` ${name}=${text}`;
  });
  return `${type}${words.join("")}`;
}

const plain = (value: unknown) => (typeof value === "bigint" ? String(value) : value);

/** Makes an endpoint report absurd prices for a while, and lets some callers accept any price. */
function startLying({ crew, payers }: Simulation, dice: Dice, has: (part: Part) => boolean): void {
  if (dice.chance(0.04) && has("lie about fees")) crew.lieAboutFees();
  if (dice.chance(0.1) && has("trust")) payers.trust();
  if (dice.chance(0.08) && has("overpay")) payers.overpay();
  if (dice.chance(0.02) && has("lie about fees")) crew.lieForGood();
}

function reorganise(world: World, crew: Crew, dice: Dice): void {
  const dropped = dice.pick(["all", "none", "some"] as const);
  const drop = dropped === "all" ? "all" : () => dropped === "some" && dice.chance(0.5);
  world.chain.reorg(dice.int(1, 5), { drop, keepInPool: dice.chance(0.5) });
  crew.reorganised();
}

/**
 * Moves the base fee. Callers offer 20 gwei: some of these values exceed that, and the highest exceeds every fee that
 * Fencepost may offer.
 */
function moveMarket(world: World, crew: Crew, dice: Dice): void {
  world.chain.setBaseFee(dice.pick([1n, 15n, 30n, 60n, 90n, 200n]) * GWEI);
  crew.count("base fee moved");
}

/**
 * A failover. If no commit can be lost, the nodes continue by themselves. If commits may be lost, an operator checks
 * for a while, resumes the lanes, and restarts the nodes.
 */
function changeHistory({ world, crew, stops, terms, losses }: Simulation, mayHaveLost: boolean): void {
  // The lanes are free at once. Nodes learn of it with their next call.
  terms.doubt(null);
  if (mayHaveLost && losses?.lose() === true) crew.count("commits lost");
  else world.database.changeHistory(mayHaveLost);
  crew.count(mayHaveLost ? "history in doubt" : "history changed");
  if (mayHaveLost) resumeLater(world, crew, stops);
}

/**
 * Resumes the lanes once, and again any that waits for an operator later: a lane that has lost its next nonce is
 * suspended only when its owner compares it with the chain, perhaps after the operator has looked.
 */
function resumeLater(world: World, crew: Crew, stops: Stops, isFirst = true): void {
  world.clock.after(4_000, () => {
    const { state } = world.database;
    if (state.epochHistory !== state.history) return resumeLater(world, crew, stops, isFirst);
    const epochOf = (signer: Address) => state.lane({ chainId: CHAIN_ID, signer })?.reconciledEpoch ?? 0;
    if (SIGNERS.some((signer) => epochOf(signer) < state.feed.epoch)) resumeLater(world, crew, stops, false);
    const lanes = [...state.lanes.values()];
    if (!isFirst && lanes.every(({ suspendedBy }) => suspendedBy !== "HISTORY")) return;
    for (const row of lanes) row.suspendedBy = null;
    // The end of a kill may be lost too.
    for (const [killId, kill] of state.kills) state.kills.set(killId, { ...kill, ended: true });
    stops.liftAll();
    crew.crashAll();
    crew.start();
  });
}

/** What the consumer has seen of the feed that is left. */
export function seenBy({ consumer, losses }: Simulation): readonly CompletionRecord[] {
  return losses?.left(consumer.seen) ?? consumer.seen;
}

function openReservation({ reservationId, nonce, state }: Reservation): readonly string[] {
  return state === "RESERVED" ? [`reservation ${reservationId} of nonce ${nonce} is open`] : [];
}

/**
 * True if all work is done. Called thousands of times in each simulation, so it computes the details of `unrest` only
 * if no caller waits.
 */
function isAtRest(simulation: Simulation): boolean {
  const { callers, reservers, operators, payers, holders, killers, clerks, webhooks, messages, spenders } = simulation;
  if ((simulation.sticklers?.waiting ?? 0) + (simulation.guests?.waiting ?? 0) > 0) return false;
  if ((webhooks?.subscribers.waiting ?? 0) + (messages?.askers.waiting ?? 0) + (spenders?.waiting ?? 0) > 0)
    return false;
  const waiting = [callers, reservers, operators, payers, holders, killers, clerks].some((actor) => actor.waiting > 0);
  if (waiting) return false;
  return unrest(simulation).length === 0;
}

/** Everything that is still in progress; empty if all work is done. */
function unrest(simulation: Simulation): readonly string[] {
  const { world, callers, reservers, operators, payers, holders, killers, clerks, webhooks, messages, spenders } =
    simulation;
  const { state } = world.database;
  const open = [...state.transactions.values()].filter((row) => !isSettled(row.state));
  return [
    ...(callers.waiting === 0 ? [] : [`${callers.waiting} callers have no answer`]),
    ...(reservers.waiting === 0 ? [] : [`${reservers.waiting} reservers have no answer`]),
    ...(operators.waiting === 0 ? [] : [`${operators.waiting} operators have no answer`]),
    ...(payers.waiting === 0 ? [] : [`${payers.waiting} payers have no answer`]),
    ...(holders.waiting === 0 ? [] : [`${holders.waiting} holders have no answer`]),
    ...(killers.waiting === 0 ? [] : [`${killers.waiting} killers have no answer`]),
    ...(clerks.waiting === 0 ? [] : [`${clerks.waiting} clerks have no answer`]),
    ...state.reservations().flatMap(openReservation),
    ...waitingIntake(state).map(({ intent }) => `intake ${intent.txId} waits`),
    ...open.map(({ lane, nonce, txId, ...row }) => `${lane.signer} ${nonce} ${txId} is ${row.state}/${row.subState}`),
    ...(webhooks?.unrest() ?? []),
    ...((spenders?.waiting ?? 0) === 0 ? [] : [`${spenders?.waiting} spenders have no answer`]),
    ...((simulation.sticklers?.waiting ?? 0) === 0
      ? []
      : [`${simulation.sticklers?.waiting} sticklers have no answer`]),
    ...((simulation.guests?.waiting ?? 0) === 0 ? [] : [`${simulation.guests?.waiting} guests have no answer`]),
    ...((messages?.askers.waiting ?? 0) === 0 ? [] : [`${messages?.askers.waiting} askers have no signature`]),
    ...(seenBy(simulation).length === state.completions.length ? [] : ["the consumer has not seen everything"]),
  ];
}
