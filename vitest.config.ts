import { defineConfig } from "vitest/config";
import { ALONE } from "./test/support/alone.ts";
import { SlowestFirst } from "./test/support/slowest-first.ts";

/** These get a PostgreSQL of the run's own, and nodes to start. All others start and build nothing before they run. */
const ON_DATABASE = [
  "test/{cluster,integration}/**/*.test.ts",
  "test/adapters/postgres/**/*.test.ts",
  "test/application/cluster/embedded.test.ts",
  "test/{attacks,drills,image}/*.test.ts",
  "test/support/database.test.ts",
];

/** Each starts a process that plays its share of a thousand seeds, all of them from one bundle. */
const SIMULATION = ["test/simulation/*.test.ts"];

const PROCESSES = [
  "test/adapters/postgres/{deadlocks,pooled,contracts/unnamed}.test.ts",
  "test/integration/{admin-port,approval,burst,chains,client-commands,database,dev-command,external}.test.ts",
  "test/integration/{fee-lies,forwarding,gas-limits,json-rpc,kms-guide,library-signers,nonces,operations}.test.ts",
  "test/integration/{peers,pools,reorg,replicas,restore,seeing,settings,upgrade,wake-ups,wire,workers}.test.ts",
  "test/main/dev/embedded/postgres{,-binaries,-places,-recovery,-server}.test.ts",
];

/** Said to each project by hand: inherited from the run, its number of workers would be theirs too, whatever a caller says. */
const EACH = {
  exclude: [
    // Minutes of real processes that are killed, frozen and cut off: `npm run test:cluster`.
    ...(process.env.FENCEPOST_CLUSTER_LONG === undefined
      ? ["test/cluster/long/**", "test/cluster/{lane-fights,routing,standing-back}.test.ts"]
      : []),
    // This file keeps every core busy, so it runs after the others: two of them would miss their deadlines beside it.
    ...(process.env.FENCEPOST_CLUSTER_LONG === "starved" ? [] : ["test/cluster/long/starved.test.ts"]),
    // Real processes on real servers, at what others try on every change in memory or more briefly: `npm run test:processes`.
    ...(process.env.FENCEPOST_PROCESSES_LONG === undefined ? PROCESSES : []),
    // Stacks of other people's tests, and what the documents say, on real nodes: `npm run test:pack`.
    ...(process.env.FENCEPOST_PACK_LONG === undefined
      ? ["test/integration/{packed-*,snippets,testing-stack}.test.ts"]
      : []),
    // What the documents tell people to type, typed: `npm run test:docs`.
    ...(process.env.FENCEPOST_DOCS_LONG === undefined ? ["test/integration/documents/**"] : []),
    // Minutes of everything that a real chain and the way to it can do: `npm run test:chain`.
    ...(process.env.FENCEPOST_CHAIN_LONG === undefined ? ["test/integration/long/**"] : []),
    // Backups, restores, upgrades and the image's content, on servers of their own: `npm run test:drills`.
    ...(process.env.FENCEPOST_DRILLS === undefined ? ["test/drills/**"] : []),
    // The image, built and run by a Docker daemon, and all of compose.yml: `npm run test:image`.
    ...(process.env.FENCEPOST_IMAGE_LONG === undefined ? ["test/image/**"] : []),
    // Each example as its reader has it, installed by npm: `npm run test:examples`.
    ...(process.env.FENCEPOST_EXAMPLES_LONG === undefined ? ["test/integration/examples/**"] : []),
    // A browser on a real node, and the pictures of the documents: `npm run test:dashboard`.
    ...(process.env.FENCEPOST_DASHBOARD_LONG === undefined
      ? [
          "test/integration/dashboard/**",
          "test/adapters/dashboard/{every-page,operating,outcomes-and-messages,strip}.test.ts",
        ]
      : []),
    // Clients of other makers, installed for it: `npm run test:clients`.
    ...(process.env.FENCEPOST_CLIENTS === undefined ? ["test/integration/clients/**"] : []),
    // Attacks from outside on a real node: lying endpoints, weak keys, stalled wires: `npm run test:attacks`.
    ...(process.env.FENCEPOST_ATTACKS === undefined ? ["test/attacks/**"] : []),
    // Alert rules and dashboard in a real Prometheus and Grafana: `npm run test:signals`.
    ...(process.env.FENCEPOST_SIGNALS === undefined ? ["test/integration/signals/**"] : []),
  ],
  // Only for what hangs: a wait has its own limit, which grows with the load of the machine (test/support/wait-until.ts).
  testTimeout: 300_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 30_000 } },
  pool: "forks" as const,
  // Worlds in memory are made and forgotten by the hundred: in a small young generation they are copied before they go.
  execArgv: ["--max-semi-space-size=64"],
};

export default defineConfig({
  test: {
    projects: [
      { test: { ...EACH, name: "alone", include: [...ALONE] } },
      {
        test: {
          ...EACH,
          name: "database",
          include: ON_DATABASE,
          isolate: false,
          globalSetup: ["test/support/global-setup.ts", "test/support/ensure-built.ts"],
          setupFiles: ["test/support/verdict.ts"],
        },
      },
      {
        test: {
          ...EACH,
          name: "simulation",
          include: SIMULATION,
          isolate: false,
          globalSetup: ["test/support/simulation/bundle.ts"],
        },
      },
      {
        test: {
          ...EACH,
          name: "in memory",
          include: ["test/**/*.test.ts"],
          exclude: [...EACH.exclude, ...ON_DATABASE, ...ALONE, ...SIMULATION],
          isolate: false,
        },
      },
    ],
    sequence: { sequencer: SlowestFirst },
    // Two cores is what the suite is timed on. Four workers only wait for the simulation, which has a low priority; the
    // others wait for real time half of the time.
    maxWorkers: 8,
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      reporter: ["text-summary", "json-summary"],
      thresholds: {
        lines: 80,
        branches: 80,
        "src/domain/**": { lines: 90, branches: 90 },
        "src/application/**": { lines: 90, branches: 90 },
      },
    },
  },
});
