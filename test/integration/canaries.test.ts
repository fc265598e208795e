/**
 * Every setting of the node that takes a secret has a unique one. The services around the node quote every request that
 * they get. No output of the node may contain a secret: not its log, its responses, its alerts or the database.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { english, generateMnemonic, generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { expect } from "vitest";
import { Canaries, secretVariables } from "../support/canaries.ts";
import { it as base, type Database, KEYS, SIGNER } from "../support/integration.ts";
import { encryptKeystore } from "../support/keystore-writer.ts";
import { type NodeProcess, spawnFencepost, type Variables } from "../support/node-process.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

/**
 * A proxy in front of a chain. If `quotes` is true for a method, the call is refused with an error that quotes the
 * whole request.
 */
interface Gateway {
  readonly port: number;
  quotes: (method: string) => boolean;
  /** If set, every HTTP request is refused as a whole with this status. */
  status: number | null;
  /** The secret of a key service. The fake remote signer quotes it in its errors too. */
  token: string;
}

const it = base.extend<{ readonly gateway: Gateway; readonly receiver: WebhookReceiver & { readonly port: number } }>({
  gateway: async ({ simulated }, use) => {
    const gateway: Omit<Gateway, "port"> = { quotes: () => false, status: null, token: "" };
    const server = createServer(async (request, response) => {
      const body = await bodyOf(request);
      const said = `POST ${request.url} authorization: ${request.headers.authorization} of ${body}`;
      if (gateway.status !== null) return void response.writeHead(gateway.status).end(said);
      if (request.url?.startsWith("/signer"))
        return void response.end(answerAsSigner(body, `${said}, with ${gateway.token}`));
      const calls = [JSON.parse(body)].flat() as readonly { readonly id: number; readonly method: string }[];
      if (!calls.some(({ method }) => gateway.quotes(method))) {
        const forwarded = await fetch(simulated.url, {
          method: "POST",
          body,
          headers: { "content-type": "application/json" },
        });
        return void response.writeHead(forwarded.status).end(await forwarded.text());
      }
      const error = { code: -32_000, message: `cannot serve ${said}`, data: { message: said, request: said } };
      const answers = calls.map(({ id }) => ({ jsonrpc: "2.0", id, error }));
      response.end(JSON.stringify(body.startsWith("[") ? answers : answers[0]));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    await use(Object.assign(gateway, { port: (server.address() as AddressInfo).port }));
    server.closeAllConnections();
    server.close();
  },
  receiver: async ({ task: _ }, use) => {
    const receiver = new WebhookReceiver();
    const { port } = new URL(await receiver.listen());
    await use(Object.assign(receiver, { port: Number(port) }));
    await receiver.close();
  },
});

const REMOTE = privateKeyToAddress(generatePrivateKey());

/** A fake remote signer that lists its account, and refuses to sign with an error that quotes the whole request. */
function answerAsSigner(body: string, said: string): string {
  const { id, method } = JSON.parse(body) as { readonly id: number; readonly method: string };
  const result = method === "eth_accounts" ? { result: [REMOTE] } : { error: { code: -32_000, message: said } };
  return JSON.stringify({ jsonrpc: "2.0", id, ...result });
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
}

/** Creates a database role with a unique password. */
async function makeRole(database: Database, canaries: Canaries, name: string) {
  const url = new URL(database.url);
  url.username = `fencepost_${randomBytes(6).toString("hex")}`;
  url.password = canaries.make(`${name} password`);
  await database.query(`CREATE ROLE ${url.username} LOGIN SUPERUSER PASSWORD '${url.password}'`);
  return { url: url.href, drop: () => database.query(`DROP ROLE ${url.username}`) };
}

interface Surroundings {
  readonly canaries: Canaries;
  readonly gateway: Gateway;
  readonly receiver: WebhookReceiver & { readonly port: number };
  readonly directory: string;
  readonly databaseUrls: readonly [string, string];
}

function everySecret({ canaries, gateway, receiver, directory, databaseUrls }: Surroundings) {
  const [own, kept] = [generatePrivateKey(), generatePrivateKey()];
  canaries.know("first private key", KEYS[0].slice(2));
  canaries.know("own private key", own.slice(2));
  canaries.know("kept private key", kept.slice(2));
  const password = canaries.make("keystore password");
  const address = privateKeyToAddress(kept).toLowerCase() as `0x${string}`;
  const keystore = encryptKeystore({ privateKey: Buffer.from(kept.slice(2), "hex"), address }, password, {
    cost: 1_024,
  });
  writeFileSync(join(directory, "key.json"), keystore, { mode: 0o600 });
  writeFileSync(join(directory, "password"), `${password}\n`, { mode: 0o600 });
  const rpc = new URL(`http://127.0.0.1:${gateway.port}/v3/${canaries.make("RPC path")}`);
  rpc.username = canaries.make("RPC user");
  rpc.password = canaries.make("RPC password");
  rpc.search = `key=${canaries.make("RPC query")}`;
  const signing = new URL(`http://127.0.0.1:${gateway.port}/signer/${canaries.make("remote signer path")}`);
  signing.password = canaries.make("remote signer password");
  const filed = generatePrivateKey();
  writeFileSync(join(directory, "hex"), `${filed}\n`, { mode: 0o600 });
  canaries.know("private key of a file", filed.slice(2));
  gateway.token = canaries.make("Vault token");
  const place = (name: string) =>
    `http://127.0.0.1:${receiver.port}/${name}/${canaries.make(`${name} path`)}?token=${canaries.make(`${name} query`)}`;
  return {
    FENCEPOST_DATABASE_URL: databaseUrls[0],
    FENCEPOST_DIRECT_DATABASE_URL: databaseUrls[1],
    FENCEPOST_RPC_URL: rpc.href,
    FENCEPOST_PRIVATE_KEYS: [KEYS[0], own].join(","),
    FENCEPOST_PRIVATE_KEY_FILES: join(directory, "hex"),
    FENCEPOST_REMOTE_SIGNER_URL: signing.href,
    VAULT_TOKEN: gateway.token,
    FENCEPOST_MNEMONIC: canaries.know("mnemonic", generateMnemonic(english)),
    FENCEPOST_KEYSTORE_DIR: directory,
    FENCEPOST_KEYSTORE_PASSWORD_FILE: join(directory, "password"),
    FENCEPOST_API_KEYS: `ops:${canaries.make("API key")}:read+submit+operate`,
    FENCEPOST_CLUSTER_SECRET: canaries.make("cluster secret"),
    FENCEPOST_AUTH: "keys",
    FENCEPOST_STUCK_HOOK: place("hook"),
    FENCEPOST_GAS_ORACLE: place("oracle"),
    FENCEPOST_WS_URL: place("heads").replace(/^http/, "ws"),
    FENCEPOST_HOOK_NETWORKS: "127.0.0.1",
    FENCEPOST_STUCK_HOOK_SECRET: canaries.make("hook secret"),
    FENCEPOST_ALERT_WEBHOOK_URL: place("alert"),
    FENCEPOST_ALERT_WEBHOOK_FORMAT: "feishu",
    // The advertised URL contains no secret: a URL with credentials would be refused.
    FENCEPOST_ADVERTISE_URL: "http://127.0.0.1:3999",
    FENCEPOST_LOG_LEVEL: "trace",
    FENCEPOST_ALERT_HEAD_AGE: "1s",
  } as const satisfies Variables;
}

type Secrets = ReturnType<typeof everySecret>;

/** A node, and all responses that it has given in this test. */
class Asked {
  readonly answers: string[] = [];
  readonly apiKey: string;
  readonly node: NodeProcess;

  constructor(node: NodeProcess, secrets: Secrets) {
    this.node = node;
    this.apiKey = secrets.FENCEPOST_API_KEYS.split(":")[1] as string;
  }

  /** Sends a request and returns status, headers and body of the response. */
  async ask(path: string, body?: unknown): Promise<string> {
    const response = await fetch(`${this.node.url}${path}`, {
      headers: { authorization: `Bearer ${this.apiKey}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
    const text = `${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`;
    this.answers.push(text);
    return text;
  }
}

/**
 * An endpoint quotes secrets in its errors: one about an estimate is returned to the caller, one about a payload is
 * stored.
 */
async function endpointQuotes(asked: Asked, gateway: Gateway): Promise<string> {
  gateway.quotes = (method) => method === "eth_estimateGas" || method === "eth_call";
  const unpriced = { signer: SIGNER, payload: { to: SIGNER, data: "0x01" } };
  expect(await asked.ask("/api/v1/tx", unpriced)).toMatch(/^(422|503) /);
  gateway.quotes = (method) => method === "eth_sendRawTransaction";
  const txId = /"txId":"([^"]+)"/.exec(await asked.ask("/api/v1/tx", pricedTransfer(0)))?.[1] as string;
  const isRefused = async () => /"lastError":"/.test(await asked.ask(`/api/v1/tx/${txId}?include=history`));
  await waitUntil(isRefused, "the endpoint refused it");
  await asked.ask(`/api/v1/tx/${txId}/explain`);
  gateway.status = 500;
  await waitUntil(() => asked.node.stderr().includes("chain.unreachable"), "the chain is missed");
  gateway.status = null;
  return txId;
}

/**
 * Operators are alerted about unsigned transactions, and `explain` shows the reason. Both texts come from the signer's
 * error.
 */
async function signerQuotes(asked: Asked): Promise<void> {
  const created = await asked.ask("/api/v1/tx", { ...pricedTransfer(2), signer: REMOTE });
  const txId = /"txId":"([^"]+)"/.exec(created)?.[1] as string;
  const isSaid = async () => /SIGNER_AWAY/.test(await asked.ask(`/api/v1/tx/${txId}/explain`));
  await waitUntil(isSaid, "the remote signer refused to sign");
}

/**
 * The hook quotes secrets in an invalid response and in a decision. Both raise alerts, and the receiver of the alerts
 * quotes secrets as well.
 */
async function hookQuotes(
  asked: Asked,
  receiver: WebhookReceiver,
  { txId, secrets }: { txId: string; secrets: Secrets },
) {
  const isHook = (path: string) => path.startsWith("/hook");
  const hasAlert = (code: string) => () => receiver.received.some(({ body }) => body.includes(code));
  expect(await asked.ask(`/api/v1/tx/${txId}/resolve`, { reason: "look" })).toMatch(/^503 /);
  await waitUntil(hasAlert("STUCK_HOOK_FAILED"), "the hook was asked by itself, and talked nonsense");
  receiver.answer = (response, { path, headers }) => {
    const { FENCEPOST_STUCK_HOOK: place, FENCEPOST_STUCK_HOOK_SECRET: secret } = secrets;
    const audit = { asked: path, with: { headers, secret } };
    const decision = { action: "NOOP", reason: `${place} says so, by ${secret}`, severity: "ERROR", audit };
    response.end(JSON.stringify(isHook(path) ? decision : { code: 19_001, msg: `no chat at ${path}` }));
  };
  expect(await asked.ask(`/api/v1/tx/${txId}/resolve`, { reason: "look again" })).toMatch(/^202 /);
  await waitUntil(hasAlert("STUCK_HOOK_DECISION"), "people are told");
  await waitUntil(() => asked.node.stderr().includes("no chat at"), "the chat's refusal is logged");
}

async function databaseQuotes(asked: Asked, database: Database, url: string): Promise<void> {
  const raise = `BEGIN RAISE EXCEPTION 'not from ${url}'; END`;
  await database.query(`CREATE FUNCTION quote() RETURNS trigger LANGUAGE plpgsql AS $$ ${raise} $$`);
  await database.query(
    "CREATE TRIGGER quotes BEFORE INSERT ON fencepost.transaction FOR EACH ROW EXECUTE FUNCTION quote()",
  );
  expect(await asked.ask("/api/v1/tx", pricedTransfer(1))).toMatch(/^503 /);
  await database.query("DROP TRIGGER quotes ON fencepost.transaction");
}

/** Acts as a caller that sends its API key in the wrong place, and reads everything that it may read. */
async function callerQuotes(asked: Asked): Promise<void> {
  const { apiKey } = asked;
  expect(await asked.ask(`/api/v1/${apiKey}`)).toMatch(/^404 /);
  expect(await asked.ask("/api/v1/tx", { [apiKey]: 1 })).toMatch(/^400 /);
  expect(await asked.ask("/api/v1/tx/batch", { transactions: [{ [apiKey]: 1 }] })).toMatch(/^200 /);
  const lists = ["signers", "nodes", "leases", "tx", "tx/completions"].map((name) => `/api/v1/${name}`);
  for (const path of ["/metrics", "/readyz", "/openapi.json", "/", ...lists]) await asked.ask(path);
}

/** Runs commands with valid settings, and with every kind of wrong setting that makes a command quote the value. */
async function commandLine(secrets: Secrets, { apiKey, node }: Asked): Promise<Readonly<Record<string, string>>> {
  const nowhere = new URL(secrets.FENCEPOST_DATABASE_URL);
  nowhere.port = "1";
  const mistaken = {
    FENCEPOST_LEASE_DURATION: apiKey,
    FENCEPOST_PRIVATE_KEYS: apiKey,
    FENCEPOST_STUCK_HOOK: secrets.FENCEPOST_STUCK_HOOK.replace("://", ":/"),
  };
  const runs: readonly (readonly [name: string, argv: readonly string[], variables: Variables, exitCode: number])[] = [
    ["fencepost config", ["config"], {}, 0],
    ["a mistaken start", ["start"], mistaken, 2],
    ["a migration of no server", ["migrate", "--verbose"], { FENCEPOST_DATABASE_URL: nowhere.href }, 1],
    ["no command", [apiKey], {}, 2],
    ["an order refused", ["resubmit", apiKey, "--reason", apiKey], { FENCEPOST_ADVERTISE_URL: node.url }, 3],
  ];
  const outputs = runs.map(async ([name, argv, variables, exitCode]) => {
    const child = spawnFencepost(argv, { variables: { ...secrets, ...variables } });
    expect((await child.exited).code, name).toBe(exitCode);
    return [name, child.stdout() + child.stderr()] as const;
  });
  return Object.fromEntries(await Promise.all(outputs));
}

/** Every row of every table, as text. */
async function dump(database: Database): Promise<string> {
  const tables = await database.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'fencepost'",
  );
  const rows = tables.map(({ name }) =>
    database.query<{ row: string }>(`SELECT t::text AS row FROM fencepost.${name} t`),
  );
  return (await Promise.all(rows)).flatMap((each) => each.map(({ row }) => row)).join("\n");
}

// protects [Attacks] src/domain/text/mask.ts, src/main/config/secrets.ts, src/adapters/evm/rpc/transport.ts, src/main/config/schema.ts
it("a node never emits a secret, even if a text from outside contains the secret", async ({
  database,
  nodes,
  gateway,
  receiver,
  simulated,
}) => {
  const canaries = new Canaries();
  const directory = await makeTemporaryDirectory();
  const roles = [await makeRole(database, canaries, "database"), await makeRole(database, canaries, "direct database")];
  const databaseUrls = roles.map(({ url }) => url) as [string, string];
  const secrets = everySecret({ canaries, gateway, receiver, directory: directory.path, databaseUrls });
  expect(secretVariables().filter((name) => !(name in secrets))).toEqual([]);
  const node = await nodes.start(simulated.url, secrets);
  const asked = new Asked(node, secrets);

  receiver.answer = (response, { path }) => void response.end(JSON.stringify({ [path]: 1 }));
  const txId = await endpointQuotes(asked, gateway);
  await hookQuotes(asked, receiver, { txId, secrets });
  await signerQuotes(asked);
  await databaseQuotes(asked, database, secrets.FENCEPOST_DATABASE_URL);
  await callerQuotes(asked);
  const outputs: Readonly<Record<string, string>> = {
    ...(await commandLine(secrets, asked)),
    log: node.stderr(),
    "standard output": node.stdout(),
    answers: asked.answers.join("\n"),
    alerts: receiver.received.map(({ body }) => body).join("\n"),
    database: await dump(database),
  };
  node.signal("SIGKILL");
  await node.exited;
  for (const { drop } of roles) await drop();
  await directory.remove();

  expect(canaries.size).toBe(26);
  expect(canaries.foundIn(outputs)).toEqual([]);
  // In each of these outputs there was a secret, which was replaced by ***.
  const stopped = Object.keys(outputs).filter((name) => outputs[name]?.includes("***"));
  expect(stopped).toEqual(expect.arrayContaining(["log", "answers", "alerts", "database", "no command"]));
});
