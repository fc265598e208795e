/** The book's table of contents. Paths are from the repository's root; a test keeps it complete. */
export interface Chapter {
  readonly title: string;
  readonly pages: readonly (readonly [title: string, path: string])[];
}

export const CHAPTERS: readonly Chapter[] = [
  {
    title: "Start",
    pages: [
      ["All pages", "docs/README.md"],
      ["Start here", "docs/guides/start.md"],
      ["How it works", "docs/guides/how-it-works.md"],
      ["Comparison", "docs/guides/comparison.md"],
      ["Moving to Fencepost", "docs/guides/migration.md"],
      ["Examples", "docs/examples.md"],
    ],
  },
  {
    title: "Recipes",
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
    title: "Guides: send",
    pages: [
      ["Embed the library", "docs/embed.md"],
      ["SDK", "docs/sdk.md"],
      ["viem and ethers", "docs/viem.md"],
      ["JSON-RPC: /rpc", "docs/rpc.md"],
      ["Pools of signers", "docs/pools.md"],
      ["Time limits and holds", "docs/time-and-holds.md"],
      ["Nonces you sign with", "docs/nonces.md"],
      ["Testing", "docs/testing.md"],
    ],
  },
  {
    title: "Guides: run",
    pages: [
      ["Run a cluster", "docs/guides/cluster.md"],
      ["Deployment", "docs/deployment.md"],
      ["Finality by chain", "docs/guides/finality.md"],
      ["Signers", "docs/signers.md"],
      ["A key in a key service", "docs/kms.md"],
      ["Policies", "docs/policies.md"],
      ["Tuning", "docs/guides/tuning.md"],
    ],
  },
  {
    title: "Operations",
    pages: [
      ["Overview", "docs/operations/README.md"],
      ["Dashboard", "docs/dashboard.md"],
      ["Seeing what happens", "docs/operations/seeing.md"],
      ["Figures and costs", "docs/operations/figures.md"],
      ["Troubleshooting", "docs/guides/troubleshooting.md"],
      ["Explain", "docs/explain.md"],
      ["Alerts", "docs/operations/alerts.md"],
      ["The stuck hook", "docs/hook.md"],
      ["External use of a key", "docs/external-use.md"],
      ["Answers and faults", "docs/node-answers.md"],
      ["Backup", "docs/operations/backup.md"],
      ["Restore", "docs/operations/restore.md"],
      ["Upgrade", "docs/operations/upgrade.md"],
      ["Retention", "docs/operations/retention.md"],
    ],
  },
  {
    title: "Reference",
    pages: [
      ["Configuration", "docs/configuration.md"],
      ["Command line", "docs/cli.md"],
      ["Errors", "docs/errors.md"],
      ["States", "docs/states.md"],
      ["Feed and events", "docs/feed.md"],
      ["Metrics", "docs/metrics.md"],
      ["Logs", "docs/logs.md"],
      ["Traces", "docs/traces.md"],
    ],
  },
  {
    title: "Inside",
    pages: [
      ["Architecture", "ARCHITECTURE.md"],
      ["Lease, term, fence", "docs/leases.md"],
      ["Many nodes", "docs/many-nodes.md"],
      ["Crashes", "docs/crashes.md"],
      ["Protections", "docs/protections.md"],
      ["Where things live", "docs/where-things-live.md"],
      ["Security", "docs/security.md"],
      ["Benchmarks", "docs/benchmarks.md"],
      ["Dependencies", "docs/dependencies.md"],
      ["Licences", "docs/licences.md"],
    ],
  },
  {
    title: "Decisions",
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
  {
    title: "Project",
    pages: [
      ["Contributing", "CONTRIBUTING.md"],
      ["Changelog", "CHANGELOG.md"],
      ["Releasing", "docs/releasing.md"],
      ["Reporting a hole", "SECURITY.md"],
    ],
  },
];
