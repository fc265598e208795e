/**
 * The book's table of contents. Paths are from the repository's root; tests keep it complete and within its budgets of
 * words and pages.
 */
export interface Chapter {
  readonly title: string;
  /** Adopters embed Fencepost or run it as a service; their pages have a budget of words. */
  readonly audience: "adopters" | "operators" | "reviewers" | "contributors";
  readonly pages: readonly (readonly [title: string, path: string])[];
}

/** A chapter that is read from its first page to its last. Its picture is on its first page. */
export interface Path extends Chapter {
  readonly picture: string;
}

export const PATHS: readonly Path[] = [
  {
    title: "Path: embed it",
    audience: "adopters",
    picture: "docs/pictures/path-embed.svg",
    pages: [
      ["1. Start here", "docs/guides/start.md"],
      ["2. Embed the library", "docs/embed.md"],
      ["3. SDK and handles", "docs/sdk.md"],
      ["4. States", "docs/states.md"],
      ["5. Feed and events", "docs/feed.md"],
      ["6. Testing", "docs/testing.md"],
    ],
  },
  {
    title: "Path: run it as a service",
    audience: "adopters",
    picture: "docs/pictures/path-service.svg",
    pages: [
      ["1. Run a cluster", "docs/guides/cluster.md"],
      ["2. A key in a key service", "docs/kms.md"],
      ["3. Policies", "docs/policies.md"],
      ["4. Finality by chain", "docs/guides/finality.md"],
      ["5. Deployment", "docs/deployment.md"],
      ["6. Tuning", "docs/guides/tuning.md"],
    ],
  },
  {
    title: "Path: operate it",
    audience: "operators",
    picture: "docs/pictures/path-operate.svg",
    pages: [
      ["1. Overview", "docs/operations/README.md"],
      ["2. Dashboard", "docs/dashboard.md"],
      ["3. Alerts", "docs/operations/alerts.md"],
      ["4. Backup", "docs/operations/backup.md"],
      ["5. Restore", "docs/operations/restore.md"],
      ["6. Upgrade", "docs/operations/upgrade.md"],
    ],
  },
  {
    title: "Path: review its security",
    audience: "reviewers",
    picture: "docs/pictures/path-security.svg",
    pages: [
      ["1. How it works", "docs/guides/how-it-works.md"],
      ["2. Security", "docs/security.md"],
      ["3. Signers", "docs/signers.md"],
      ["4. Dependencies", "docs/dependencies.md"],
      ["5. Protections", "docs/protections.md"],
      ["6. Reporting a hole", "SECURITY.md"],
    ],
  },
];

export const CHAPTERS: readonly Chapter[] = [
  {
    title: "Choose",
    audience: "adopters",
    pages: [
      ["Contents", "docs/README.md"],
      ["Comparison", "docs/guides/comparison.md"],
      ["Moving to Fencepost", "docs/guides/migration.md"],
      ["Examples", "docs/examples.md"],
    ],
  },
  ...PATHS,
  {
    title: "Recipes",
    audience: "adopters",
    pages: [
      ["Next.js", "docs/recipes/nextjs.md"],
      ["NestJS", "docs/recipes/nestjs.md"],
      ["AWS Lambda", "docs/recipes/lambda.md"],
      ["Prisma", "docs/recipes/prisma.md"],
      ["Drizzle", "docs/recipes/drizzle.md"],
      ["Kysely", "docs/recipes/kysely.md"],
      ["Knex", "docs/recipes/knex.md"],
      ["TypeORM", "docs/recipes/typeorm.md"],
      ["Python", "docs/recipes/python.md"],
    ],
  },
  {
    title: "More ways to send",
    audience: "adopters",
    pages: [
      ["viem and ethers", "docs/viem.md"],
      ["JSON-RPC: /rpc", "docs/rpc.md"],
      ["Pools of signers", "docs/pools.md"],
      ["Time limits and holds", "docs/time-and-holds.md"],
      ["Nonces you sign with", "docs/nonces.md"],
      ["Messages under policy", "docs/messages.md"],
      ["Webhooks for outcomes", "docs/webhooks.md"],
    ],
  },
  {
    title: "When something waits",
    audience: "adopters",
    pages: [
      ["Troubleshooting", "docs/guides/troubleshooting.md"],
      ["Explain", "docs/explain.md"],
      ["Errors", "docs/errors.md"],
      ["The stuck hook", "docs/hook.md"],
      ["External use of a key", "docs/external-use.md"],
    ],
  },
  {
    title: "Reference: settings and nodes",
    audience: "adopters",
    pages: [
      ["Configuration", "docs/configuration.md"],
      ["Many nodes", "docs/many-nodes.md"],
      ["Traces", "docs/traces.md"],
    ],
  },
  {
    title: "Reference: operations",
    audience: "operators",
    pages: [
      ["Command line", "docs/cli.md"],
      ["Seeing what happens", "docs/operations/seeing.md"],
      ["Figures and costs", "docs/operations/figures.md"],
      ["Retention", "docs/operations/retention.md"],
      ["Metrics", "docs/metrics.md"],
      ["Logs", "docs/logs.md"],
      ["Responses and faults", "docs/node-answers.md"],
      ["Changelog", "CHANGELOG.md"],
    ],
  },
  {
    title: "For contributors",
    audience: "contributors",
    pages: [
      ["Contributing", "CONTRIBUTING.md"],
      ["Architecture", "ARCHITECTURE.md"],
      ["Proof", "docs/proof.md"],
      ["Where things live", "docs/where-things-live.md"],
      ["Lease, term, fence", "docs/leases.md"],
      ["Crashes", "docs/crashes.md"],
      ["Benchmarks", "docs/benchmarks.md"],
      ["Releasing", "docs/releasing.md"],
      ["Licences", "docs/licences.md"],
    ],
  },
  {
    title: "Decisions",
    audience: "contributors",
    pages: [
      ["Fence by row lock", "docs/decisions/fence-by-row-lock.md"],
      ["One heartbeat", "docs/decisions/one-heartbeat.md"],
      ["Gapless feed", "docs/decisions/gapless-feed.md"],
      ["Rows, not COPY", "docs/decisions/rows-not-copy.md"],
      ["Session lock", "docs/decisions/session-lock.md"],
      ["Two endpoints agree", "docs/decisions/two-endpoints-agree.md"],
      ["Kept counts", "docs/decisions/kept-counts.md"],
      ["One ledger", "docs/decisions/one-ledger.md"],
      ["Named pace", "docs/decisions/named-pace.md"],
      ["Rooms of the application", "docs/decisions/rooms-of-the-application.md"],
    ],
  },
];
