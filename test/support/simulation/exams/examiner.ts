import type { Dice } from "../../../../src/main/dev/chaos/dice.ts";
import type { World } from "../../world.ts";
import type { Crew } from "../crew.ts";
import { askInSilence, believeNoLiar, failAlone, failBehindOthers, trace } from "./calls.ts";
import { Desk } from "./desk.ts";
import { askEmbedded, closeAlone, handOver } from "./moves.ts";
import {
  awaitApproval,
  commitSlowly,
  endWatches,
  keepSending,
  keepSequence,
  nameBadly,
  storeHash,
  unstick,
} from "./order.ts";
import { findMoney, repeatThroughPool, spread } from "./pools.ts";
import { fillLane, fillNode, fillShare } from "./queues.ts";
import { askTwiceAtOnce, loseReply, repeatAtNonce, repeatLater } from "./repeats.ts";
import { busy, failPartly, failWhileOthersWait, lookUpMany, poison, poisonAndLoss, poisonAndOutage } from "./writes.ts";

type Exam = (desk: Desk) => Promise<void>;

const EXAMS: readonly Exam[] = [
  askEmbedded,
  askInSilence,
  askTwiceAtOnce,
  busy,
  commitSlowly,
  endWatches,
  failAlone,
  failBehindOthers,
  failPartly,
  failWhileOthersWait,
  fillLane,
  fillNode,
  fillShare,
  findMoney,
  handOver,
  believeNoLiar,
  keepSequence,
  keepSending,
  lookUpMany,
  loseReply,
  nameBadly,
  poison,
  poisonAndLoss,
  poisonAndOutage,
  repeatAtNonce,
  repeatLater,
  repeatThroughPool,
  spread,
  storeHash,
  trace,
  unstick,
];
/** Exams at the end of one simulation, beside that of approvals where its policies ask for some. */
const EXAMS_AT_A_TIME = 3;
/** Share of the examined simulations in which one node is left at last, and shuts down. */
const WITH_LAST_NODE = 0.15;
/** Time for the nodes to agree on who has which lane, in ms. */
const SETTLING_MS = 1_500;

/**
 * Examines the nodes once everything is repaired and all work is done: callers ask a node without faults, and know each
 * answer beforehand. What goes wrong meanwhile is chosen, so that the answer to it is known too.
 */
export class Examiner {
  readonly violations: string[] = [];
  readonly counts = new Map<string, number>();
  private readonly world: World;
  private readonly crew: Crew;
  private readonly dice: Dice;
  private readonly asksApproval: boolean;
  private desk: Desk | null = null;

  constructor(world: World, crew: Crew, dice: Dice, asksApproval: boolean) {
    this.asksApproval = asksApproval;
    this.world = world;
    this.crew = crew;
    this.dice = dice;
  }

  async examine(): Promise<void> {
    const desk = new Desk(this.world, this.crew, this.dice);
    this.desk = desk;
    await desk.node.node.start();
    await this.world.clock.sleep(SETTLING_MS);
    if (this.asksApproval) await this.sit(desk, awaitApproval);
    const left = [...EXAMS];
    for (let n = 0; n < EXAMS_AT_A_TIME; n++) {
      const [exam = spread] = left.splice(this.dice.int(0, left.length - 1), 1);
      await this.sit(desk, exam);
    }
    if (this.dice.chance(WITH_LAST_NODE)) await this.sit(desk, closeAlone);
  }

  private async sit(desk: Desk, exam: Exam): Promise<void> {
    const before = desk.violations.length;
    await exam(desk);
    await desk.rest();
    desk.count(`examined: ${exam.name}`);
    this.violations.push(...desk.violations.slice(before).map((what) => `${exam.name}: ${what}`));
  }

  /** Compares all answers with the database, once everything is settled again. */
  close(): void {
    if (this.desk === null) return;
    const before = this.desk.violations.length;
    this.desk.settle();
    this.violations.push(...this.desk.violations.slice(before));
    for (const [what, times] of this.desk.counts) this.counts.set(what, times);
  }
}
