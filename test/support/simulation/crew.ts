import { type Fence, type Hex, type LaneKey, laneKey } from "../../../src/domain/lane.ts";
import { feeCap } from "../../../src/domain/transaction/fees.ts";
import type { Payload, UnsignedTransaction } from "../../../src/domain/transaction/transaction.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { SubmitOptions } from "../../../src/ports/chain.ts";
import type { Failpoint } from "../../../src/ports/failpoints.ts";
import { BatchRefused, type LaneWrite, OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { SignerAway } from "../../../src/ports/signer.ts";
import { Faults, type ReceiptLie } from "../../doubles/simulated-chain/faults.ts";
import { MESSAGE_FAILPOINTS, NONCE_FAILPOINTS, TRANSACTION_FAILPOINTS } from "../nonce-failpoints.ts";
import { watchMemory } from "../remembered.ts";
import { TO, type World, type WorldNode } from "../world.ts";
import { KeyWatch } from "./key-watch.ts";
import type { Messages } from "./messages.ts";
import { countCalls } from "./places.ts";
import type { Receivers } from "./receivers.ts";
import type { Stops } from "./stops.ts";
import type { Terms } from "./terms.ts";

interface Member {
  readonly entry: WorldNode;
  /** A "starting" node accepts no requests. A "gone" node never comes back: a restart adds a new node. */
  phase: "starting" | "up" | "closing" | "gone";
  crashAt: { readonly name: Failpoint; passages: number } | null;
  /** Until this time no request or response of this node passes, as with SIGSTOP or a very long garbage collection. */
  frozenUntilMs: number;
  lied: boolean;
  /** True once a fault has struck this node. */
  isTroubled: boolean;
  /** The endpoint that lies about the chain's state; null as long as none has. */
  liar: Faults | null;
  /** How far the wall clock of the node's machine is ahead of the database's. */
  aheadMs: number;
  /** Faults of the node's second endpoint; null if it has none. */
  readonly elsewhere: Faults | null;
}

/** An absurd gas price: 0.004 ether per unit of gas. */
const FORTUNE = 4n * 10n ** 15n;
/** By how much a machine's wall clock is wrong, in ms: of a second to a day, in both directions. */
const WRONG_BY_MS = [-86_400_000, -3_600_000, -90_000, -1_500, 700, 5_000, 90_000, 3_600_000] as const;
/** How deep the block of a tag is. Deeper than any reorg of a simulation, so that a finalized block is never replaced. */
export const TAG_DEPTHS = { safe: 2, finalized: 6 };
const COMMIT_FAULTS = ["unavailable", "busy", "unknown-committed", "unknown-lost"] as const;
/** How late the bytes of a commit may reach the server, in ms: sometimes after the term has ended. */
const LATEST_COMMIT_MS = 6_000;
/** By how much the database's clock may be wrong, in ms, and its widest jump. */
const DATABASE_WRONG_BY_MS = [-20_000, -3_000, -400, 0, 400, 3_000, 20_000] as const;
export const WIDEST_JUMP_MS = 40_000;
/** How late a call from node to node may arrive, in ms: some callers have given up by then. */
const SLOW_WIRES_MS = [40, 400, 12_000] as const;
const CHAIN_METHODS = [
  "eth_getBlockByNumber",
  "eth_getBlockByHash",
  "eth_getBlockReceipts",
  "eth_getTransactionReceipt",
  "eth_getTransactionCount",
  "eth_sendRawTransaction",
] as const;

const RECEIPT_LIES: readonly ReceiptLie[] = [
  (honest) => ({ ...honest, status: honest.status === "success" ? "reverted" : "success" }),
  (honest) => ({ ...honest, gasUsed: honest.gasUsed + 1n }),
  (honest) => ({ ...honest, contractAddress: `0x${"ee".repeat(20)}` }),
  () => null,
];

type StateLie = readonly [kind: string, begin: (faults: Faults, world: World) => void, end: (faults: Faults) => void];

const STATE_LIES: readonly StateLie[] = [
  ["balances", (faults) => faults.lieAboutBalance(() => 0n), (faults) => faults.lieAboutBalance(null)],
  ["reverts", (faults) => faults.lieAboutReverts(TO), (faults) => faults.lieAboutReverts(null)],
  ["newest tags", (faults, { chain }) => faults.lieAboutTags(() => chain.head), (faults) => faults.lieAboutTags(null)],
  ["missing tags", (faults) => faults.lieAboutTags(() => null), (faults) => faults.lieAboutTags(null)],
  ["old state", (faults) => faults.prune(1), (faults) => faults.prune(Number.POSITIVE_INFINITY)],
  ["one URL for two", (faults) => faults.alternate(3), (faults) => faults.alternate(0)],
];

/** Methods of the store other than commits. Each may fail while the others work. Some change data, others only read. */
const LEASE_CALLS = [
  "acquireLane",
  "claimLanes",
  "releaseLane",
  "renewInstance",
  "declareDead",
  "announce",
  "publishLock",
] as const;
const READS = [
  "loadLane",
  "loadAllocated",
  "loadRawTransactions",
  "loadWatched",
  "settledBelow",
  "findByRequestIds",
  "findPooled",
  "queues",
  "whatWaits",
  "loadIntake",
  "instances",
  "signersOf",
  "transaction",
  "history",
  "reservation",
] as const;

/** Methods of the store that only webhooks use. */
const WEBHOOK_CALLS = [
  "claimSubscribers",
  "writeDeliveries",
  "addSubscriber",
  "changeSubscriber",
  "removeSubscriber",
] as const;
const WEBHOOK_READS = ["subscribers", "feed", "costsOf"] as const;

type Failing = (typeof LEASE_CALLS | typeof READS)[number] | (typeof WEBHOOK_CALLS | typeof WEBHOOK_READS)[number];

/** How much earlier than its first private send a transaction may have been claimed, in ms. */
const PRIVACY_SLACK_MS = 2_000;
/** Time within which a lane is handed over, in ms, and the database calls that this takes at most. */
const HAND_OVER_MS = 300;
const HAND_OVER_CALLS = 8;
/** Values of the payers' payloads, some of which leave the price to the market. */
const MARKET_VALUES = { from: 70_000_000n, to: 90_000_000n };
/** A first price is at most this many times the highest base fee so far, and a tip. */
const MARKET_FACTOR = 10n;
const USUAL_TIP = 3_000_000_000n;
const isUnpriced = ({ maxFeePerGas, gasPrice }: Payload) => maxFeePerGas === undefined && gasPrice === undefined;
/** Time within which every node knows of a reorg, in ms: longer than a node is frozen, and a caller waits. */
const UNAWARE_MS = 8_000;
/** Time within which a node without faults knows the newest block, in ms. */
const SETTLED_MS = 2_000;
/** A false transaction count, higher than any that a simulation reaches. */
const LIE = 1_000_000;

/** Kinds of writes that no caller waits for. If the database refuses such a write, the node makes it again. */
const REFUSABLE: readonly LaneWrite["kind"][] = ["transition", "unwatch", "confirmations", "expire", "closeHoles"];

/** Failpoints that are rarely passed. The simulation chooses them more often, and always at their first passage. */
const RARE: readonly Failpoint[] = [
  ...NONCE_FAILPOINTS,
  "lapse.committed",
  "another.signed",
  "another.committed",
  "complete.committed",
  "withdraw.committed",
];

/**
 * The rarest failpoints. The simulation chooses them even more often, because they need a reorg of mined but not final
 * transactions, or a caller that releases a nonce.
 */
const RAREST: readonly Failpoint[] = (["withdraw.committed", "release.committed"] as const).flatMap((name) =>
  Array.from({ length: 8 }, () => name),
);

/**
 * Passed in so few seeds that a node chosen beforehand hardly ever comes to it: any node may crash there, with this
 * chance.
 */
const UNFORESEEN = { name: "lapse.committed", chance: 0.3 } as const;

export interface CrewOptions {
  readonly slowness: number;
  readonly feeDice: Dice;
  /** Decides which nodes have an endpoint that refuses batches, and how long each send takes there. */
  readonly wireDice: Dice;
  /** Decides how wrong the nodes' wall clocks are. */
  readonly clockDice: Dice;
  /** Decides which passages of the failpoint `UNFORESEEN` end in a crash. */
  readonly lapseDice: Dice;
  readonly stops: Stops;
  readonly terms: Terms;
  /** True if every node sends to a private endpoint first. */
  readonly isPrivate: boolean;
  /** Receivers of webhooks; null if this simulation has none. */
  readonly receivers: Receivers | null;
  /** Signatures of messages; null if this simulation has none. */
  readonly messages: Messages | null;
}

/** The nodes of a simulation, and the faults that can happen to them. */
export class Crew {
  readonly counts = new Map<string, number>();
  /** Endpoints that currently report false receipts. */
  private readonly receiptLies = new Map<Faults, ReceiptLie>();
  readonly violations: string[] = [];
  /** When a node last committed, in virtual time. */
  lastCommitMs = 0;
  private lastStartMs = 0;
  private lastReorgMs = Number.NEGATIVE_INFINITY;
  private highestFee = 0n;
  /** When each private transaction was first sent. */
  private readonly privateSinceMs = new Map<string, number>();
  private readonly tokens = new Map<LaneKey, number>();
  private tokensOf = 1;
  private readonly world: World;
  private readonly dice: Dice;
  private readonly members: Member[] = [];
  private refusals = 0;
  private readonly slowness: number;
  private readonly feeDice: Dice;
  private readonly wireDice: Dice;
  private readonly clockDice: Dice;
  private readonly lapseDice: Dice;
  /** True once no more faults may occur. */
  private isHealed = false;
  private readonly stops: Stops;
  private readonly terms: Terms;
  private readonly isPrivate: boolean;
  private readonly receivers: Receivers | null;
  private readonly messages: Messages | null;
  readonly keys: KeyWatch;

  constructor(world: World, dice: Dice, options: CrewOptions) {
    this.world = world;
    this.dice = dice;
    this.slowness = options.slowness;
    this.feeDice = options.feeDice;
    this.wireDice = options.wireDice;
    this.clockDice = options.clockDice;
    this.lapseDice = options.lapseDice;
    this.stops = options.stops;
    this.terms = options.terms;
    this.isPrivate = options.isPrivate;
    this.receivers = options.receivers;
    this.messages = options.messages;
    this.keys = new KeyWatch(world, options.wireDice, options.stops);
  }

  /** The nodes to which a load balancer would send requests. */
  readonly up = (): readonly WorldNode[] =>
    this.members.filter(({ phase }) => phase === "up" || phase === "closing").map(({ entry }) => entry);

  get alive(): number {
    return this.members.filter(({ phase }) => phase === "starting" || phase === "up").length;
  }

  /** The highest base fee that the market has had. */
  get dearest(): bigint {
    const { blocks, nextBaseFee } = this.world.chain;
    const fee = blocks.head.baseFeePerGas ?? 0n;
    for (const each of [fee, nextBaseFee ?? 0n]) if (each > this.highestFee) this.highestFee = each;
    return this.highestFee;
  }

  /** True if all nodes have been up for a while, and no endpoint has failed or lied in this simulation. */
  get isCalm(): boolean {
    const isTrouble = [...this.counts.keys()].some((what) =>
      /^(?:chain|lied|fees|lagged|invented|frozen|cut)/.test(what),
    );
    return !isTrouble && this.world.clock.monotonicMs() - this.lastStartMs > SETTLED_MS;
  }

  /** True if a node may not know yet of a reorg. */
  get hasReorged(): boolean {
    return this.world.clock.monotonicMs() - this.lastReorgMs < UNAWARE_MS;
  }

  /** Records that the chain has just replaced blocks. */
  reorganised(): void {
    this.lastReorgMs = this.world.clock.monotonicMs();
    this.count("reorg");
  }

  start(): void {
    this.lastStartMs = this.world.clock.monotonicMs();
    const holder: { member: Member | null } = { member: null };
    const elsewhere = this.dice.chance(0.3) ? new Faults() : null;
    const aheadMs = this.clockDice.chance(0.4) ? this.clockDice.pick(WRONG_BY_MS) : 0;
    const entry = this.world.addNode({
      failpoint: (name) => (holder.member === null ? undefined : this.pass(holder.member, name)),
      latency: () => this.travel(holder.member),
      sending: this.stops.sending,
      aheadMs: () => holder.member?.aheadMs ?? aheadMs,
      ...(this.isPrivate ? { privateEndpoints: ["https://builder.example"] } : {}),
      ...(this.wireDice.chance(0.4) ? { eachSend: () => this.crawl(holder.member) } : {}),
      ...(elsewhere === null ? {} : { elsewhere: { chain: this.world.chain, faults: elsewhere } }),
      ...(this.receivers === null ? {} : { webhooks: this.receivers.senderOf(() => holder.member?.entry ?? null) }),
      onEvent: (event) => this.messages?.happened(holder.member?.entry ?? null, event),
    });
    countCalls(entry.node.api, (what) => this.count(what));
    this.receivers?.follow(entry);
    this.messages?.watch.follow(entry);
    // Whether a signer refuses to sign must depend only on the payload, so that the signers of all nodes refuse the
    // same payloads.
    entry.signer.refuse((unsigned) => {
      this.watchCost(unsigned);
      if (elsewhere !== null) this.watchPrice(unsigned);
      return unsigned.value % 23n === 7n;
    });
    this.watchCommits(entry);
    if (this.isPrivate) this.watchPrivacy(entry);
    this.terms.follow(entry);
    this.keys.follow(entry);
    watchMemory(entry.store, (what) => this.violations.push(what));
    // Report false prices from the first response on, so that the node has no honest block to compare them with.
    if (this.feeDice.chance(0.15)) this.lie(entry);
    const member: Member = {
      entry,
      phase: "starting",
      crashAt: null,
      frozenUntilMs: 0,
      lied: false,
      isTroubled: false,
      liar: null,
      aheadMs,
      elsewhere,
    };
    holder.member = member;
    this.members.push(member);
    this.count("started");
    entry.node.start().then(
      () => {
        if (member.phase === "starting") member.phase = "up";
      },
      () => {
        this.crash(member);
        // A node that gave up its start while everything was broken ends only now; its supervisor starts it again.
        if (this.isHealed && this.alive === 0) this.start();
      },
    );
  }

  crashNow(): void {
    this.withMember((member) => this.crash(member));
  }

  crashSoon(): void {
    this.withMember((member) => {
      const name = this.dice.pick([...TRANSACTION_FAILPOINTS, ...TRANSACTION_FAILPOINTS, ...RARE, ...RARE, ...RAREST]);
      member.crashAt ??= { name, passages: RARE.includes(name) ? 1 : this.dice.int(1, 2) };
    });
  }

  /** Crashes a node the next time it is about to have a message signed, or has just had it signed. */
  crashWhileSigning(dice: Dice): void {
    this.withMember((member) => {
      member.crashAt ??= { name: dice.pick(MESSAGE_FAILPOINTS), passages: 1 };
    }, dice);
  }

  close(dice = this.dice): void {
    const candidates = this.members.filter(({ phase }) => phase !== "gone");
    if (candidates.length === 0) return;
    const member = dice.pick(candidates);
    if (member.phase !== "up") return;
    // A node whose peers are all about to end has nobody to hand over to, and answers its creates first.
    if (this.members.some((other) => other !== member && other.phase === "up")) this.watchHandOver(member);
    member.phase = "closing";
    this.count("closed");
    void member.entry.node.close().then(() => {
      if (member.phase === "closing") this.bury(member);
    });
  }

  /** Checks that a node without faults gives its lanes away soon, also while a send of theirs is still out. */
  private watchHandOver(member: Member): void {
    const { state } = this.world.database;
    const { url } = member.entry;
    const isOurs = (owner: string | null) => owner !== null && state.instances.get(owner)?.url === url;
    const held = [...state.lanes.values()]
      .filter(({ owner }) => isOurs(owner))
      .map(({ lane, token }) => ({ lane, token }));
    this.world.clock.after(HAND_OVER_MS + HAND_OVER_CALLS * this.slowness, () => {
      if (member.isTroubled || this.counts.has("history changed") || this.counts.has("history in doubt")) return;
      this.count("hand-over watched");
      for (const { lane, token } of held) {
        const row = state.lane(lane);
        if (row?.token === token && isOurs(row.owner))
          this.violations.push(`${url} still has the lane of ${lane.signer} long after it began to close`);
      }
    });
  }

  failCommits(): void {
    this.withMember(({ entry }) => {
      const fault = this.dice.pick(COMMIT_FAULTS);
      const times = this.dice.int(1, 3);
      for (let i = 0; i < times; i++) entry.store.failNextCommit(fault);
      this.count(fault);
    });
  }

  /** Lets the bytes of a commit arrive after its node has given up on it. */
  delayCommit(dice: Dice): void {
    this.withMember(({ entry }) => entry.store.failNextCommit({ lateMs: dice.int(1, LATEST_COMMIT_MS) }), dice);
    this.count("commit delayed");
  }

  /** Sets the database's clock forward or back. */
  jumpDatabaseClock(dice: Dice): void {
    this.world.database.aheadMs = dice.pick(DATABASE_WRONG_BY_MS);
    this.terms.doubt(null);
    this.keys.wasSet = true;
    this.count("database clock jumped");
  }

  /** Breaks or slows the way from the other nodes to one node for a while, or loses single calls of any node. */
  partition(dice: Dice): void {
    this.withMember((member) => {
      const { network } = this.world;
      const { url } = member.entry;
      const kind = dice.pick(["silent", "slow", "lostRequest", "lostReply", "refused"] as const);
      this.count(`nodes apart: ${kind}`);
      if (kind === "silent") network.silence(url);
      else if (kind === "slow") network.slow(url, dice.pick(SLOW_WIRES_MS));
      else return network.inject(kind, dice.int(1, 3));
      this.world.clock.after(dice.int(50, 6_000), () => network.heal(url));
    }, dice);
  }

  /**
   * Makes one kind of call to the database fail for a while: either the call is not carried out, or its response is
   * lost.
   */
  failCalls(): void {
    this.failOneOf(this.dice, LEASE_CALLS, READS);
  }

  /** As `failCalls`, for the calls of webhooks and of those who subscribe. */
  failWebhookCalls(dice: Dice): void {
    this.failOneOf(dice, WEBHOOK_CALLS, WEBHOOK_READS);
  }

  private failOneOf(dice: Dice, calls: readonly Failing[], reads: readonly Failing[]): void {
    this.withMember(({ entry: { store } }) => {
      const changes = dice.chance(0.5);
      const method = dice.pick(changes ? calls : reads);
      const kind = dice.pick(["away", "busy", "unheard"] as const);
      const original = store[method].bind(store) as (...args: unknown[]) => Promise<unknown>;
      let left = dice.int(1, 8);
      const failing = async (...args: unknown[]): Promise<unknown> => {
        if (left-- <= 0) return original(...args);
        if (kind === "unheard") await original(...args);
        if (kind === "unheard" && changes) throw new OutcomeUnknown("the connection died at COMMIT");
        throw new StoreUnavailable("the database is away", { busy: kind === "busy" });
      };
      Object.assign(store, { [method]: failing });
      this.count(`calls ${kind}`);
    }, dice);
  }

  /** Makes the database refuse a valid write. The owner must then reload the lane and plan the write again. */
  refuseWrites(): void {
    this.refusals += this.dice.int(1, 4);
    this.count("refused");
  }

  /** Makes the key service unreachable for a while, or restarts the signing process, which loses its memory. */
  loseSigner(mostMs: number): void {
    this.withMember(({ entry: { signer } }) => {
      signer.remember();
      const until = this.world.clock.monotonicMs() + this.dice.int(50, mostMs);
      const sign = signer.sign.bind(signer);
      const signMessages = signer.signMessages.bind(signer);
      const isAway = () => this.world.clock.monotonicMs() < until;
      signer.sign = (...args) => (isAway() ? Promise.reject(new Error("the key service is away")) : sign(...args));
      signer.signMessages = (...args) =>
        isAway() ? Promise.reject(new SignerAway("the key service is away")) : signMessages(...args);
      this.count("signer away");
    });
  }

  /** Freezes the node's connection to the database, sometimes for longer than the lease. */
  pauseStore(mostMs: number): void {
    this.withMember(({ entry }) => {
      entry.store.pause();
      this.world.clock.after(this.dice.int(50, mostMs), () => entry.store.resume());
      this.count("paused");
    });
  }

  /** Sets the wall clock of a machine forward or back. */
  jumpClock(): void {
    const member = this.clockDice.pick([...this.members.filter(({ phase }) => phase !== "gone"), null]);
    if (member === null) return;
    member.aheadMs = this.clockDice.pick([0, ...WRONG_BY_MS]);
    this.count("clock jumped");
  }

  freeze(mostMs: number): void {
    this.withMember((member) => {
      member.frozenUntilMs = this.world.clock.monotonicMs() + this.dice.int(50, mostMs);
      this.count("frozen");
    });
  }

  cutStore(mostMs: number): void {
    this.withMember((member) => {
      const { store, lock } = member.entry;
      store.cut();
      lock?.cut();
      this.world.clock.after(this.dice.int(50, mostMs), () => {
        if (member.phase === "gone") return;
        store.heal();
        lock?.heal();
      });
      this.count("cut");
    });
  }

  troubleChain(): void {
    this.withMember((member) => {
      const kind = this.dice.pick(["unavailable", "loseReply"] as const);
      const method = this.dice.chance(0.3) ? {} : { method: this.dice.pick(CHAIN_METHODS) };
      const end = member.entry.faults.inject({ kind }, { ...method, times: this.dice.int(1, 30) });
      this.world.clock.after(this.dice.int(200, 5_000), () => member.phase !== "gone" && end());
      this.count(`chain ${kind}`);
    });
  }

  /** Makes an endpoint fall behind and catch up later. */
  lagChain(): void {
    this.withMember(({ entry, elsewhere }) => {
      const faults = this.dice.pick([entry.faults, elsewhere ?? entry.faults]);
      faults.pinHead(this.world.chain.head.number - this.dice.int(0, 2));
      this.world.clock.after(this.dice.int(200, 3_000), () => faults.pinHead(null));
      this.count("lagged");
    });
  }

  /** Makes the endpoint overstate the gas of every call for a few calls: below the chain's cap or far above it. */
  lieAboutGas(): void {
    this.withMember(({ entry: { faults } }) => {
      const claimed = this.dice.pick([1_900_000n, 14_191_170n]);
      let lies = this.dice.int(1, 6);
      faults.lieAboutGas((honest) => (lies-- > 0 ? claimed : honest));
      this.count("lied about gas");
    });
  }

  /**
   * Makes the endpoint report one transaction count that is too high. A second read returns the true count. Done once
   * per node, because a node would believe two equal false counts.
   */
  lieAboutNonce(): void {
    this.withMember((member) => {
      if (member.lied) return;
      member.lied = true;
      let lies = 1;
      member.entry.faults.lieAboutNonce((honest) => (lies-- > 0 ? honest + this.dice.int(1, 700) : honest));
      this.count("lied");
    });
  }

  /**
   * Makes an endpoint report false base fees (zero, none or absurd) and a gas price that would empty an account, for a
   * while.
   */
  lieAboutFees(): void {
    const candidates = this.members.filter(({ phase }) => phase !== "gone");
    if (candidates.length > 0) this.lie(this.feeDice.pick(candidates).entry);
  }

  private lie({ faults }: WorldNode): void {
    const lie = { baseFee: this.feeDice.pick([0n, null, FORTUNE]), price: FORTUNE };
    // A payload at a price that nobody mines is not signed again by a chain's node: only an operator can repair that.
    if (this.world.nodeSigners.length === 0) faults.lieAboutFees(lie);
    this.world.clock.after(this.feeDice.int(500, 8_000), () => faults.lieAboutFees(null));
    this.count("fees lied about");
  }

  /** Checks that nothing is signed above the ceilings, whether the price is the caller's or the market's. */
  private watchCost({ gas, fees, nonce }: UnsignedTransaction): void {
    const { feePerGas, gasCost } = this.world.ceilings;
    const cap = feeCap(fees);
    if (cap === feePerGas) this.count("priced at the ceiling");
    if (cap <= feePerGas && gas * cap <= gasCost) return;
    this.violations.push(`nonce ${nonce} was signed for ${gas} gas at ${cap} wei, above ${feePerGas} or ${gasCost}`);
  }

  /** Checks that private bytes go to a private endpoint alone, until their time is over or somebody discloses them. */
  private watchPrivacy({ rpc }: WorldNode): void {
    const submit = rpc.submit.bind(rpc);
    const watched: typeof rpc.submit = (sends, how: SubmitOptions = {}) => {
      for (const { raw } of sends) this.lookAtRoute(raw, how.privately === true);
      return submit(sends);
    };
    Object.assign(rpc, { submit: watched });
  }

  private lookAtRoute(raw: Hex, isPrivately: boolean): void {
    const tx = this.world.rows().find(({ attempts }) => attempts.some((each) => each.rawTransaction === raw));
    if (tx === undefined) return;
    const nowMs = this.world.clock.monotonicMs();
    const sinceMs = this.privateSinceMs.get(tx.txId);
    if (isPrivately) {
      this.privateSinceMs.set(tx.txId, sinceMs ?? nowMs);
      this.count("sent privately");
      return;
    }
    if (tx.attempts.some((each) => each.private === true)) this.violations.push(`${tx.txId} is private and was shown`);
    if (sinceMs === undefined) return;
    const { publicAfterMs } = this.world.settings;
    const isEarly = publicAfterMs === null || nowMs - sinceMs + PRIVACY_SLACK_MS < publicAfterMs;
    const isDecided = tx.history.some(({ decision }) => decision !== null);
    if (isEarly && !isDecided && !this.keys.wasSet) this.violations.push(`${tx.txId} was shown to everybody too soon`);
    this.count("disclosed");
  }

  /**
   * Checks that no single endpoint of two sets a price: the first price of a transaction that left it to the market is
   * not far above all that the market has asked for.
   */
  private watchPrice({ value, fees }: UnsignedTransaction): void {
    if (value < MARKET_VALUES.from || value >= MARKET_VALUES.to) return;
    const row = this.world.rows().find(({ payload }) => payload.value === value);
    if (row === undefined || row.attempts.length > 0 || !isUnpriced(row.payload)) return;
    const most = MARKET_FACTOR * this.dearest + USUAL_TIP;
    if (feeCap(fees) > most) this.violations.push(`${row.txId} was priced at ${feeCap(fees)} wei, above ${most}`);
  }

  /**
   * Makes one of two endpoints permanently report a far too high transaction count, while the other endpoint is a block
   * behind. No node may believe that count.
   */
  lieForGood(): void {
    const candidates = this.members.filter(({ phase, elsewhere }) => phase !== "gone" && elsewhere !== null);
    if (candidates.length === 0) return;
    const { entry, elsewhere } = this.feeDice.pick(candidates);
    entry.faults.lieAboutNonce((honest) => honest + LIE);
    elsewhere?.trail(1);
    this.world.clock.after(this.feeDice.int(500, 8_000), () => {
      entry.faults.lieAboutNonce(null);
      elsewhere?.trail(0);
    });
    this.count("lied for good");
  }

  /**
   * Makes one of the node's two endpoints report blocks that no other endpoint has: nothing may become final through
   * them.
   */
  inventBlocks(dice: Dice): void {
    const candidates = this.members.filter(({ phase, elsewhere }) => phase !== "gone" && elsewhere !== null);
    if (candidates.length === 0) return;
    const faults = this.liarOf(dice.pick(candidates), dice);
    faults.inventBlocks(dice.int(1, 12));
    this.world.clock.after(dice.int(500, 8_000), () => faults.inventBlocks(0));
    this.count("invented blocks");
  }

  /**
   * Checks that no transaction becomes final with fewer real confirmations than required, whatever blocks an endpoint
   * invents.
   */
  private watchDepth(write: LaneWrite): void {
    const { finality, confirmations } = this.world.settings;
    if (write.kind !== "transition") return;
    const least = finality === "confirmations" ? confirmations : TAG_DEPTHS[finality];
    for (const { txId, completion } of write.items) {
      const block = this.world.database.state.transactions.get(txId)?.receipt;
      const place = completion?.settled === true ? this.world.chain.blocks.placeOf(completion.txHash ?? "0x") : null;
      if (place === null || place.block.hash !== block?.blockHash) continue;
      const depth = this.world.chain.head.number - place.block.number;
      if (depth < least) this.violations.push(`${txId} was final ${depth} blocks deep, of ${least}`);
    }
  }

  /**
   * Makes one endpoint report false receipts of real blocks, for long enough that a decision could be based on them.
   */
  lieAboutReceipts(dice: Dice): void {
    const candidates = this.members.filter(({ phase }) => phase !== "gone");
    if (candidates.length === 0) return;
    const { entry, elsewhere } = dice.pick(candidates);
    const faults = dice.pick([entry.faults, elsewhere ?? entry.faults]);
    const other = faults === entry.faults ? elsewhere : entry.faults;
    const lie = dice.pick(RECEIPT_LIES);
    // Two endpoints must not report the same false receipt, because a node cannot detect that. Two different false
    // receipts are allowed and must decide nothing.
    if (other !== null && this.receiptLies.get(other) === lie) return;
    faults.lieAboutReceipts(lie);
    this.receiptLies.set(faults, lie);
    this.world.clock.after(dice.int(500, 8_000), () => {
      faults.lieAboutReceipts(null);
      this.receiptLies.delete(faults);
    });
    this.count("lied about receipts");
  }

  /**
   * Makes one of two endpoints lie about balances, reverts or block tags, keep no old state, or be two machines behind
   * one URL. One liar of two decides nothing.
   */
  lieAboutState(dice: Dice): void {
    const candidates = this.members.filter(({ phase, elsewhere }) => phase !== "gone" && elsewhere !== null);
    if (candidates.length === 0) return;
    const faults = this.liarOf(dice.pick(candidates), dice);
    const [kind, begin, end] = dice.pick<StateLie>(STATE_LIES);
    begin(faults, this.world);
    this.world.clock.after(dice.int(500, 8_000), () => end(faults));
    this.count(`lied about ${kind}`);
  }

  /**
   * The endpoint of a node that lies about blocks and state. Of two endpoints, one liar decides nothing. Two do, even one
   * after the other, because answers are remembered for a while.
   */
  private liarOf(member: Member, dice: Dice): Faults {
    const { entry, elsewhere } = member;
    member.liar ??= dice.pick([entry.faults, elsewhere ?? entry.faults]);
    return member.liar;
  }

  /** Breaks the connection over which the node gets hints; the node then reconnects. */
  loseHints(): void {
    this.withMember((member) => {
      const { wakeUps } = member.entry;
      wakeUps?.disconnect();
      this.world.clock.after(this.dice.int(50, 5_000), () => member.phase !== "gone" && wakeUps?.reconnect());
    });
  }

  /** Ends the session of the node's lock while the node lives, possibly without a notification. */
  loseSession(): void {
    this.withMember(({ entry }) => {
      const { lock } = entry;
      const isSilent = this.dice.chance(0.5);
      if (isSilent) this.terms.doubt(entry);
      if (isSilent) lock?.vanish();
      else lock?.interrupt();
      this.count("session lost");
    });
  }

  /** Ends all sessions, as in a server restart after which processes reconnect slowly. */
  endSessions(): void {
    this.world.database.restarted();
    for (const member of this.members) {
      const { lock } = member.entry;
      if (member.phase === "gone" || lock === null) continue;
      lock.cut();
      this.world.clock.after(this.dice.int(0, 3_000), () => member.phase !== "gone" && lock.heal());
    }
    this.count("sessions ended");
  }

  /** Removes all faults and makes sure that at least one node runs. */
  heal(): void {
    this.isHealed = true;
    this.world.database.aheadMs = 0;
    for (const member of this.members) {
      const { entry, phase, elsewhere } = member;
      if (phase === "gone") continue;
      Object.assign(member, { crashAt: null, frozenUntilMs: 0 });
      entry.store.resume();
      entry.store.heal();
      entry.lock?.heal();
      entry.store.forgetFaults();
      entry.faults.heal();
      this.world.network.heal(entry.url);
      elsewhere?.heal();
    }
    if (this.alive === 0) this.start();
  }

  crashAll(): void {
    for (const member of this.members) if (member.phase !== "gone") this.crash(member);
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  private withMember(act: (member: Member) => void, dice = this.dice): void {
    const candidates = this.members.filter(({ phase }) => phase !== "gone");
    if (candidates.length === 0) return;
    const member = dice.pick(candidates);
    member.isTroubled = true;
    act(member);
  }

  private crash(member: Member): void {
    if (member.phase === "gone") return;
    this.count("crashed");
    this.bury(member);
  }

  private bury(member: Member): void {
    member.phase = "gone";
    this.world.crash(member.entry);
    member.entry.store.resume();
  }

  private pass(member: Member, name: Failpoint): Promise<void> | undefined {
    const { crashAt } = member;
    const isChosen = crashAt?.name === name && --crashAt.passages <= 0;
    if (!isChosen && !this.strikes(name)) return undefined;
    member.isTroubled = true;
    this.count(`crashed at ${name}`);
    this.crash(member);
    return new Promise(() => undefined);
  }

  /** True if a crash that nobody armed happens here. */
  private strikes(name: Failpoint): boolean {
    if (name !== UNFORESEEN.name || this.isHealed) return false;
    // If a chain's node holds the key, Fencepost only reports such a hole, and an operator must repair it.
    return this.world.nodeSigners.length === 0 && this.lapseDice.chance(UNFORESEEN.chance);
  }

  /** Delays each send of an endpoint that accepts one at a time, as on a slow connection. */
  private async crawl(member: Member | null): Promise<void> {
    this.count("sent one by one");
    await this.world.clock.sleep(this.wireDice.int(0, 400));
    await this.travel(member);
  }

  private async travel(member: Member | null): Promise<void> {
    const { clock } = this.world;
    if (this.slowness > 0 && this.dice.chance(0.5)) await clock.sleep(this.dice.int(0, this.slowness));
    while (member !== null && member.phase !== "gone" && clock.monotonicMs() < member.frozenUntilMs) {
      await clock.sleep(50);
    }
  }

  /**
   * Checks that the tokens of accepted writes only grow (invariant I2). Also refuses every batch with a poisoned value:
   * one that the API accepts but the database cannot store.
   */
  private watchCommits({ store }: WorldNode): void {
    const commit = store.commit.bind(store);
    store.commit = async (writes) => {
      if (this.refusals > 0 && writes.every(({ kind }) => REFUSABLE.includes(kind))) {
        this.refusals--;
        throw new BatchRefused("refused for once");
      }
      // A realignment only lowers, to the count at most.
      const raising = writes.filter(({ kind }) => kind !== "realign");
      if (raising.some((write) => "floor" in write && (write.floor ?? 0) >= LIE)) {
        this.violations.push("a count that one endpoint lied about was believed");
        throw new BatchRefused("it would take too long to repair");
      }
      for (const write of writes) this.watchDepth(write);
      const items = writes.flatMap((write) => (write.kind === "allocate" ? write.items : []));
      if (items.some(({ intent }) => intent.metadata?.poison === true)) throw new BatchRefused("poison");
      this.lastCommitMs = this.world.clock.monotonicMs();
      const committed = await commit(writes);
      this.messages?.committed(writes);
      committed.outcomes.forEach((outcome, index) => {
        if (outcome.status !== "fenced") this.accepted((writes[index] as LaneWrite).fence);
        else this.count("fenced");
      });
      return committed;
    };
  }

  private accepted({ lane, token }: Fence): void {
    const { history } = this.world.database.state;
    // A database that has lost commits gives the same tokens again.
    if (history !== this.tokensOf) this.tokens.clear();
    this.tokensOf = history;
    const highest = this.tokens.get(laneKey(lane)) ?? 0;
    if (token < highest) this.violations.push(`a write under token ${token} was accepted after ${highest}`);
    if (token > highest && highest > 0) this.count("takeover");
    this.tokens.set(laneKey(lane), Math.max(highest, token));
  }
}
