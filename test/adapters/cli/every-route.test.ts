/** Tests that the command line can do everything that the API can do. */
import { describe, expect, it } from "vitest";
import type { Screen } from "../../../src/adapters/cli/terminal.ts";
import { ROUTES } from "../../../src/contract/routes.ts";
import { runCommand } from "../../support/command.ts";
import { recordedNode } from "../../support/recorded-node.ts";

const ID = "019a4b7e-0000-7000-8000-000000000001";
const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const HASH = `0x${"ab".repeat(32)}`;
const because = ["--reason", "ticket 4711"];
const payload = ["--payload", `{"to":"${SIGNER}"}`];

/** The command that calls each route, by the route's name, and the text that it prints. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  createTransaction: ["send", "--signer", SIGNER, "--to", SIGNER],
  createTransactions: ["send", "--file", "many.json"],
  getTransaction: ["tx", ID],
  explainTransaction: ["explain", ID],
  getTransactionByRequest: ["tx", "--signer", SIGNER, "--request-id", "order-42"],
  listTransactions: ["list"],
  reserveNonce: ["nonces", "reserve", "--signer", SIGNER],
  getReservation: ["nonces", "show", ID],
  submitReserved: ["nonces", "submit", ID, "0x02"],
  useReserved: ["nonces", "used", ID, HASH],
  releaseReserved: ["nonces", "release", ID],
  requestSignature: ["sign", "--signer", SIGNER, "--message", "Log in"],
  listSignatures: ["signatures", "list"],
  getSignature: ["signatures", "show", ID],
  approveSignature: ["signatures", "approve", ID, ...because],
  rejectSignature: ["signatures", "reject", ID, ...because],
  listCompletions: ["completions"],
  streamCompletions: ["completions", "--follow"],
  listSigners: ["signers"],
  getSigner: ["signers", SIGNER],
  resubmitTransaction: ["resubmit", ID, ...because],
  repriceTransaction: ["reprice", ID, ...because],
  cancelTransaction: ["cancel", ID, ...because],
  replaceTransaction: ["replace", ID, ...because, ...payload],
  resolveTransaction: ["resolve", ID, ...because],
  approveTransaction: ["approve", ID, ...because],
  rejectTransaction: ["reject", ID, ...because],
  suspendTransaction: ["hold", ID, ...because],
  resumeTransaction: ["unhold", ID, ...because],
  suspendSigner: ["suspend", SIGNER, ...because],
  resumeSigner: ["resume", SIGNER, ...because],
  realignSigner: ["realign", SIGNER, ...because],
  listWebhooks: ["webhooks", "list"],
  addWebhook: ["webhooks", "add", "books", "https://books.example/outcomes"],
  getWebhook: ["webhooks", "show", "books"],
  changeWebhook: ["webhooks", "change", "books", "--states", "CONFIRMED"],
  removeWebhook: ["webhooks", "remove", "books"],
  pauseWebhook: ["webhooks", "pause", "books"],
  resumeWebhook: ["webhooks", "resume", "books"],
  replayWebhook: ["webhooks", "replay", "books", "--after", "41"],
  testWebhook: ["webhooks", "test", "books"],
  rotateWebhook: ["webhooks", "rotate", "books"],
  listKeys: ["keys", "api", "list"],
  addKey: ["keys", "api", "new", "checkout"],
  revokeKey: ["keys", "api", "revoke", "checkout"],
  checkPolicy: ["policy", "check", "--signer", SIGNER, ...payload],
  getPolicies: ["policy", "show"],
  applyPolicies: ["policy", "apply", "policies.json", "--reason", "r"],
  getPolicyUsage: ["policy", "usage"],
  getAttention: ["attention"],
  getOverview: ["overview"],
  search: ["search", "order-42"],
  getNonceRuler: ["ruler", SIGNER],
  listNotices: ["notices"],
  acknowledgeNotice: ["acknowledge", "5c1f9a70-1e6f-4a58-9d43-0c2b7f2f6a11", "--reason", "why"],
  getHistory: ["figures", "--signer", SIGNER],
  getCosts: ["costs", "--by", "day"],
  getAbis: ["abis", "show"],
  putAbis: ["abis", "apply", "abis.json"],
  getCaller: ["whoami"],
  listSignerNames: ["names"],
  getClusterHistory: ["history"],
  listNodes: ["nodes"],
  listLeases: ["leases"],
  killEverything: ["kill"],
  endKillOfEverything: ["unkill"],
  killSigner: ["kill", SIGNER],
  endKillOfSigner: ["unkill", SIGNER],
  getHealth: ["health"],
  getReadiness: ["ready"],
  getMetrics: ["metrics"],
  getOpenApi: ["openapi"],
  getDocs: ["openapi", "--html"],
};

const files = {
  "policies.json": "{}",
  "abis.json": '{"items":[]}',
  "many.json": JSON.stringify([
    { signer: SIGNER, payload: {} },
    { signer: SIGNER, payload: {} },
  ]),
};

async function ask(argv: readonly string[], screen?: Screen) {
  const { asked, actions } = recordedNode();
  const ended = await runCommand(argv, { files, ...(actions && { actions }), ...(screen && { screen }) });
  return { ...ended, asked };
}

/** Routes to test: all routes of the API except JSON-RPC, which is for wallets. */
const REACHED = ROUTES.map(({ operationId, path }) => ({ operationId, path })).filter(
  ({ path }) => !path.startsWith("/rpc"),
);

describe("the CLI commands that call the API", () => {
  // protects [The command line] src/adapters/cli/run-cli.ts
  it.each(REACHED.map(({ operationId }) => operationId))("include a command that calls %s", async (operationId) => {
    const { asked, code, stderr } = await ask(COMMANDS[operationId] ?? []);
    expect(
      asked.map(({ route }) => route.operationId),
      stderr,
    ).toContain(operationId);
    // The example response of the batch route has a refused item, so the command ends with the exit code for a refusal.
    expect(code, stderr).toBe(operationId === "createTransactions" ? 3 : 0);
  });

  it.each(REACHED.map(({ operationId }) => operationId))(
    "print the response of %s as JSON with --json",
    async (operationId) => {
      if (operationId === "getDocs") return;
      const { stdout } = await ask([...(COMMANDS[operationId] ?? []), "--json"]);
      expect(JSON.parse(stdout)).toBeTypeOf("object");
    },
  );

  it.each(REACHED.map(({ operationId }) => operationId))(
    "do not put --url, --api-key or --profile into the query or body of %s",
    async (operationId) => {
      const named = ["--url", "http://node.example", "--api-key", "s3cret-of-an-operator", "--profile", "production"];
      const { asked, stderr } = await ask([...(COMMANDS[operationId] ?? []), ...named]);
      const sent = JSON.stringify(asked.map(({ query, body }) => ({ query, body })));
      expect(asked.length, stderr).toBeGreaterThan(0);
      for (const value of ["node.example", "s3cret", "production"]) expect(sent).not.toContain(value);
    },
  );

  /** Documents that are printed as the node sends them. */
  const RAW = ["getMetrics", "getOpenApi", "getDocs", "getPolicies", "applyPolicies"];
  const SHOWN = REACHED.map(({ operationId }) => operationId).filter((operationId) => !RAW.includes(operationId));

  // protects [The command line] src/adapters/cli/table.ts
  it.each(SHOWN)("print the response of %s within 60, 80 and 120 columns", async (operationId) => {
    for (const columns of [60, 80, 120]) {
      const { stdout } = await ask(COMMANDS[operationId] ?? [], { columns, rows: 40, colours: false });
      // A command to paste is one line, and so is a hash to copy.
      const lines = stdout.split("\n").filter((line) => !/^ *fencepost |: fencepost |^\S+ +0x[0-9a-f]{64}$/.test(line));
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
      // No cell is cut to a remainder that says nothing: `re…d`, `c…`.
      expect(stdout).not.toMatch(/(^| {2})\S{0,2}…\S{0,2}( {2}|$)/m);
    }
  });

  it.each(REACHED.map(({ operationId }) => operationId))(
    "show on a terminal what they wait for, until %s has answered",
    async (operationId) => {
      const doing: string[] = [];
      const { actions = {} } = recordedNode();
      await runCommand(COMMANDS[operationId] ?? [], { files, actions, doing });
      expect(doing[0]).toMatch(/^(waiting for|sending|adding up) /);
      expect(doing.at(-1)).toBe("end");
    },
  );

  const requestOf = async (argv: readonly string[]) => (await ask(argv)).asked.at(-1);

  it("send options such as --reason and --nonce in the request body", async () => {
    const fees = ["--max-fee-per-gas", "20gwei", "--max-priority-fee-per-gas", "1gwei"];
    const resolving = ["resolve", ID, ...because, "--action", "REPLACE", "--then", "manual", ...payload, ...fees];
    const { body: resolved } = (await requestOf(resolving)) ?? {};
    expect(resolved).toHaveProperty("then", "manual");
    expect(resolved).toMatchObject({
      reason: "ticket 4711",
      action: "REPLACE",
      payload: { to: SIGNER },
      fees: { maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" },
    });
    const audited = ["cancel", ID, ...because, "--audit", '{"ticket":4711}'];
    expect((await requestOf(audited))?.body).toEqual({ reason: "ticket 4711", audit: { ticket: 4711 } });
    const lowered = ["realign", SIGNER, ...because, "--nonce", "17", "--chain-id", "5"];
    expect((await requestOf(lowered))?.body).toEqual({ reason: "ticket 4711", nonce: 17, chainId: 5 });
    const reserving = ["nonces", "reserve", "--signer", SIGNER, "--ttl", "5m", "--chain-id", "1"];
    expect((await requestOf(reserving))?.body).toEqual({ signer: SIGNER, ttl: "5m", chainId: 1, requestId: "made-up" });
  });

  it("send options such as --limit and --after in the query string", async () => {
    expect((await requestOf(["ready", "--chain-id", "5"]))?.query).toEqual({ chain: "5" });
    expect((await requestOf(["signers", "--limit", "2", "--after", "x"]))?.query).toEqual({ limit: "2", after: "x" });
    expect((await requestOf(["signers", SIGNER, "--fresh"]))?.query).toEqual({ fresh: "true" });
    const paged = ["completions", "--after", "7", "--epoch", "2", "--limit", "9"];
    expect((await requestOf(paged))?.query).toEqual({ after: "7", epoch: "2", limit: "9" });
    const filtered = ["list", "--state", "STUCK", "--signer", SIGNER, "--order", "oldest", "--limit", "3"];
    expect((await requestOf(filtered))?.query).toEqual({ state: "STUCK", signer: SIGNER, order: "oldest", limit: "3" });
  });
});
