/** Faults of a campaign, each with its weight, where it may strike and how long it lasts. */
import type { Clock } from "../../../ports/clock.ts";
import type { NodeChild } from "../demo/embedded-cluster.ts";
import type { EmbeddedPostgres } from "../embedded/postgres.ts";
import type { DevChain } from "../embedded/start-chain.ts";
import type { Dice } from "./dice.ts";
import type { Disk } from "./disk.ts";
import type { Endpoint, Misconduct, RpcCall } from "./endpoint.ts";
import type { Query } from "./facts.ts";
import type { WallClock } from "./wall-clock.ts";
import type { Wire, WireState } from "./wire.ts";

/** A node and the wires around it, which outlive its processes. */
export interface Member {
  readonly name: string;
  node(): NodeChild;
  restart(): Promise<void>;
  readonly database: Pick<Wire, "become">;
  /** Through which the other nodes reach it. */
  readonly peers: Pick<Wire, "become">;
  /** The second one also lies. */
  readonly endpoints: readonly [Endpoint, Endpoint];
  readonly clock: WallClock;
}

export interface Site {
  readonly dice: Dice;
  readonly clock: Clock;
  readonly members: readonly Member[];
  readonly chain: DevChain;
  readonly postgres: EmbeddedPostgres;
  readonly query: Query;
  /** Null: the database's file system has other users. */
  readonly disk: Disk | null;
  /** Uses a signer's next nonce with its key, as another program would. */
  readonly sendForeign: () => Promise<void>;
}

export interface Fault {
  readonly name: string;
  readonly weight: number;
  /** Shortest and longest time in ms. */
  readonly lasts: readonly [number, number];
  /** False: cannot strike here. */
  readonly canStrike?: (site: Site) => boolean;
  /** The part that is struck; drawn before, so that a part that is struck already is left alone. */
  aim(site: Site): Target;
  strike(site: Site, target: Target): Promise<(() => void | Promise<void>) | void>;
}

export interface FaultRecord {
  readonly name: string;
  readonly part: string;
  readonly fromMs: number;
  untilMs: number;
}

/** What a fault strikes: the same part is not struck twice at a time. */
export interface Target {
  readonly part: string;
  readonly member: Member | null;
}

const LEASE_AND_MORE_MS = 7_000;
const MOMENT = [0, 0] as const;

export const processOf = (name: string) => `process of ${name}`;

const process = ({ dice, members }: Site): Target => {
  const member = dice.pick(members);
  return { part: processOf(member.name), member };
};
const wireOf =
  (wire: "database" | "peers") =>
  ({ dice, members }: Site) => {
    const member = dice.pick(members);
    return { part: `${wire} wire of ${member.name}`, member };
  };
const endpointOf =
  (which: 0 | 1) =>
  ({ dice, members }: Site) => {
    const member = dice.pick(members);
    return { part: `endpoint ${which + 1} of ${member.name}`, member };
  };
const alone = (part: string) => (): Target => ({ part, member: null });
const databaseServer = alone("database server");

type Part = Pick<Fault, "name" | "weight" | "lasts">;

const ofProcess = (part: Part, strike: (site: Site, member: Member) => ReturnType<Fault["strike"]>): Fault => ({
  ...part,
  aim: process,
  strike: (site, { member }) => strike(site, member as Member),
});

function ofWire(part: Part, wire: "database" | "peers", state: (dice: Dice) => Partial<WireState>): Fault {
  return {
    ...part,
    aim: wireOf(wire),
    strike: async ({ dice }, { member }) => {
      member?.[wire].become(state(dice));
      return () => member?.[wire].become({});
    },
  };
}

function ofEndpoint(part: Part, which: 0 | 1, conduct: (dice: Dice) => Misconduct): Fault {
  return {
    ...part,
    aim: endpointOf(which),
    strike: async ({ dice }, { member }) => {
      member?.endpoints[which].behave(conduct(dice));
      return () => member?.endpoints[which].behave({});
    },
  };
}

const ofChain = (part: Part, strike: (site: Site) => ReturnType<Fault["strike"]>): Fault => ({
  ...part,
  aim: alone("chain"),
  strike,
});

const failing = (dice: Dice): Misconduct =>
  dice.pick<Misconduct>([
    { breaks: "before" },
    { breaks: "after" },
    { status: 502 },
    { status: 429 },
    { delayMs: dice.int(50, 3_000) },
    { instead: () => ({ error: { code: -32_005, message: "limit exceeded" } }) },
    { instead: () => ({ result: null }) },
  ]);

const hex = (value: bigint | number) => `0x${value.toString(16)}`;

/** A result with some members changed; anything that is no object stays as it is. */
const with_ = (change: (each: Readonly<Record<string, unknown>>) => object) => (result: unknown) =>
  typeof result === "object" && result !== null && !Array.isArray(result)
    ? { ...result, ...change(result as Readonly<Record<string, unknown>>) }
    : result;
const ofEach = (change: (result: unknown) => unknown) => (result: unknown) =>
  Array.isArray(result) ? result.map(change) : change(result);

const flipped = with_(({ status }) => ({ status: status === "0x1" ? "0x0" : "0x1" }));
const costlier = with_(({ gasUsed }) => ({ gasUsed: hex(BigInt(String(gasUsed ?? 0)) + 1n) }));
const fortune = with_(() => ({ baseFeePerGas: hex(4n * 10n ** 15n) }));
const elsewhere = with_(({ number }) => ({ hash: `0x${"ab".repeat(32)}`, number }));

type Lie = (call: RpcCall, result: unknown) => unknown;

/** Changes the results of some methods. */
const about =
  (methods: readonly string[], lie: (result: unknown) => unknown): Lie =>
  ({ method }, result) =>
    methods.includes(method) ? lie(result) : result;

const RECEIPTS = ["eth_getTransactionReceipt", "eth_getBlockReceipts"];
const BLOCKS = ["eth_getBlockByNumber", "eth_getBlockByHash"];
const PRICES = ["eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_blobBaseFee"];

const refusing = (message: string): Misconduct => ({
  instead: ({ method }) => (method === "eth_sendRawTransaction" ? { error: { code: -32_000, message } } : undefined),
});

const lying = (dice: Dice): Misconduct => {
  const far = dice.int(1, 700);
  return dice.pick<Misconduct>([
    { lie: about(["eth_getTransactionCount"], (count) => hex(Number(count) + far)) },
    { lie: about(["eth_getTransactionCount"], () => "0x0") },
    { lie: about(RECEIPTS, ofEach(flipped)) },
    { lie: about(RECEIPTS, ofEach(costlier)) },
    { lie: about(RECEIPTS, () => null) },
    { lie: about(BLOCKS, fortune) },
    { lie: about(BLOCKS, elsewhere) },
    { lie: about(["eth_blockNumber"], (number) => hex(Number(number) + far)) },
    { lie: about(PRICES, () => hex(4n * 10n ** 15n)) },
    { lie: about(["eth_estimateGas"], () => hex(14_191_170)) },
    { lie: about(["eth_getBalance"], () => "0x0") },
    { lie: about(["eth_chainId"], () => "0x1") },
    refusing("nonce too low"),
    refusing("already known"),
    refusing("replacement transaction underpriced"),
    refusing("insufficient funds for gas * price + value"),
    refusing("invalid sender"),
    {
      // Says that it took the bytes, and drops them.
      instead: ({ method }) => (method === "eth_sendRawTransaction" ? { result: `0x${"cd".repeat(32)}` } : undefined),
    },
  ]);
};

/** Depths of a reorg, smaller than the confirmations of a campaign: final transactions stay final. */
export const DEEPEST_REORG = 3;

export const FAULTS: readonly Fault[] = [
  ofProcess({ name: "kill -9", weight: 3, lasts: [0, 4_000] }, async (_, member) => {
    member.node().signal("SIGKILL");
    return () => member.restart();
  }),
  ofProcess({ name: "SIGSTOP", weight: 4, lasts: [50, LEASE_AND_MORE_MS] }, async (_, member) => {
    member.node().signal("SIGSTOP");
    return () => member.node().signal("SIGCONT");
  }),
  ofProcess({ name: "graceful restart", weight: 2, lasts: MOMENT }, async (_, member) => {
    await member.node().stop();
    return () => member.restart();
  }),
  ofWire({ name: "database cut", weight: 3, lasts: [50, LEASE_AND_MORE_MS] }, "database", () => ({ cut: true })),
  ofWire({ name: "database unreachable", weight: 4, lasts: [50, LEASE_AND_MORE_MS] }, "database", (dice) => ({
    blocked: dice.pick(["requests", "answers", "both"] as const),
  })),
  ofWire({ name: "database slow", weight: 3, lasts: [200, 5_000] }, "database", (dice) => ({
    delayMs: dice.int(5, 300),
  })),
  {
    name: "backends terminated",
    weight: 3,
    lasts: MOMENT,
    aim: databaseServer,
    strike: async ({ query, dice }) => {
      const share = dice.pick([0.2, 0.6, 1]);
      await query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND random() < $1",
        [share],
      );
    },
  },
  {
    name: "database crashed",
    weight: 1,
    lasts: MOMENT,
    aim: databaseServer,
    strike: ({ postgres }) => postgres.restart("immediate"),
  },
  {
    name: "database restarted",
    weight: 1,
    lasts: MOMENT,
    aim: databaseServer,
    strike: ({ postgres }) => postgres.restart("fast"),
  },
  {
    name: "disk full",
    weight: 2,
    lasts: [500, 5_000],
    aim: databaseServer,
    canStrike: ({ disk }) => disk !== null,
    strike: async ({ disk, postgres }) => {
      await disk?.fill();
      return async () => {
        await disk?.empty();
        // A server without space for its log ends, and does not come back by itself.
        await postgres.restart("immediate");
      };
    },
  },
  {
    name: "clock jumps",
    weight: 3,
    lasts: [500, 20_000],
    aim: ({ dice, members }) => {
      const member = dice.pick(members);
      return { part: `clock of ${member.name}`, member };
    },
    strike: async ({ dice }, { member }) => {
      await member?.clock.set(dice.pick([-1, 1]) * dice.pick([900, 30_000, 3_600_000, 86_400_000]));
      return () => member?.clock.set(0);
    },
  },
  ofWire({ name: "peers cut", weight: 2, lasts: [50, 5_000] }, "peers", () => ({ cut: true })),
  ofWire({ name: "peers unreachable", weight: 2, lasts: [50, 5_000] }, "peers", (dice) => ({
    blocked: dice.pick(["requests", "answers", "both"] as const),
  })),
  ofWire({ name: "peers slow", weight: 1, lasts: [200, 5_000] }, "peers", (dice) => ({ delayMs: dice.int(5, 500) })),
  ofEndpoint({ name: "endpoint fails", weight: 4, lasts: [200, 6_000] }, 0, failing),
  ofEndpoint({ name: "second endpoint fails", weight: 2, lasts: [200, 6_000] }, 1, failing),
  ofEndpoint({ name: "second endpoint lies", weight: 8, lasts: [300, 10_000] }, 1, lying),
  ofChain({ name: "reorg", weight: 3, lasts: MOMENT }, async ({ chain, dice }) => {
    await chain.rpc("fencepost_reorg", [dice.int(1, DEEPEST_REORG)]);
  }),
  ofChain({ name: "pool dropped", weight: 1, lasts: MOMENT }, async ({ chain }) => {
    const pending = (await chain.rpc("eth_pendingTransactions")) as readonly { readonly hash: string }[];
    for (const { hash } of pending) await chain.rpc("hardhat_dropTransaction", [hash]);
  }),
  ofChain({ name: "no blocks", weight: 1, lasts: [500, 5_000] }, async ({ chain }) => {
    await chain.rpc("fencepost_pause");
    return async () => void (await chain.rpc("fencepost_resume"));
  }),
  ofChain({ name: "base fee moved", weight: 2, lasts: [500, 8_000] }, async ({ chain, dice }) => {
    await chain.rpc("fencepost_setBaseFee", [hex(BigInt(dice.pick([1, 15, 60, 150])) * 10n ** 9n)]);
    return async () => void (await chain.rpc("fencepost_setBaseFee", [null]));
  }),
  {
    name: "foreign transaction",
    weight: 1,
    lasts: MOMENT,
    aim: alone("foreign"),
    strike: ({ sendForeign }) => sendForeign(),
  },
];
