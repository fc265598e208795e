/**
 * Turns snippets of the documents into runnable modules. Names that a snippet uses but does not declare (`signer`,
 * `order`, `db`) are supplied, and addresses are replaced by those of a stack. test/types and embed-guide.ts check that
 * the snippets compile unchanged.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Stack } from "fencepost/testing";

const root = fileURLToPath(new URL("../../", import.meta.url));
const RECIPIENT = "0x00000000000000000000000000000000000000AA";

export interface RunnableSnippet {
  readonly name: string;
  readonly text: string;
  /** Expected output if the snippet did what the page says. */
  readonly said: RegExp;
}

/** The code blocks of a page in this language, in order. */
export function blocksOf(page: string, language = "ts"): readonly string[] {
  const text = readFileSync(`${root}docs/${page}`, "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, code = ""]) => code);
}

/** All runnable snippets. The stack must have two accounts that Fencepost does not manage, and a pool "payouts". */
export function openSnippets(stack: Stack): readonly RunnableSnippet[] {
  const here = (text: string) =>
    text
      .replaceAll(/https:\/\/fencepost(-\d)?\.internal/g, stack.url)
      .replaceAll("https://rpc.example", stack.rpcUrl)
      .replaceAll("postgres://app:secret@localhost/app", stack.databaseUrl);
  const modules = [...ofSdk(stack), ofEmbed(stack), ofRpc(), ofPools(stack), ofTimeAndHolds(stack)];
  return modules.map((each) => ({ ...each, text: here(each.text) }));
}

const CLIENT = 'import { createClient } from "fencepost/client";';
const numbered = (page: string, texts: readonly string[], said: readonly RegExp[]): readonly RunnableSnippet[] =>
  texts.map((text, at) => ({ name: `open-${page}-${at}`, text, said: said[at] ?? /^unexpected$/ }));

/**
 * The snippets of docs/sdk.md. `log` and `book` end a snippet that would otherwise run for ever, once it has done its
 * work.
 */
function ofSdk({ signers, strangers, databaseUrl }: Stack): readonly RunnableSnippet[] {
  const [account, withoutCode] = strangers;
  const given = (at: number) => `
    import { Client as PgClient } from "pg";
    import { privateKeyToAccount } from "viem/accounts";
    const db = new PgClient(${JSON.stringify(databaseUrl)}), client = db;
    await db.connect();
    await db.query("CREATE TABLE IF NOT EXISTS feed_place AS SELECT 0 AS seq, 1 AS epoch");
    const account = privateKeyToAccount("${account?.privateKey}"), apiKey = undefined, amount = 1n, order = { id: "sdk-${at}" };
    const signer = "${at === 1 ? account?.address : signers[0]}", recipient = "${RECIPIENT}", token = "${withoutCode?.address}";
    const log = (...words) => {
      console.log(...words.map(String));
      if (typeof words[0] === "number") process.exit(0);
    };
    const book = ({ state }) => log("booked", state) ?? process.exit(0);`;
  const texts = blocksOf("sdk.md").map((code, at) => `${given(at)}\n${code}\nawait db.end();\n`);
  const handle = /^[\w-]{36} \d+ success$/m;
  return numbered("sdk", texts, [
    handle,
    /^\d+ [\w-]{36}$/m,
    /CONFIRMED/,
    /^[A-Z]+$/m,
    /^NO_CODE /m,
    /^booked CONFIRMED$/m,
  ]);
}

/** All snippets of docs/embed.md as one module: the first snippet starts the node that the others use. */
function ofEmbed({ strangers, databaseUrl }: Stack): RunnableSnippet {
  const account = strangers[1];
  const [start = "", ...blocksAfter] = blocksOf("embed.md");
  // Key services are not available here: test/integration/library-signers.test.ts starts with each of them.
  const others = blocksAfter.filter((code) => !code.includes("keystoreDir"));
  const blocks = others.map(
    (code, at) => `{
      const order = { id: "embed-${at}" };
      const payment = { signer, requestId: order.id, payload: { to: RECIPIENT, value: 1n } };
      ${LIBRARIES[at] ?? ""}
      ${code}
    }`,
  );
  const text = `
    import { drizzle } from "drizzle-orm/node-postgres";
    import { pgTable, text } from "drizzle-orm/pg-core";
    import { createFencepost } from "fencepost";
    import createKnex from "knex";
    import { Kysely, PostgresDialect } from "kysely";
    import pg from "pg";
    import postgres from "postgres";
    const url = ${JSON.stringify(databaseUrl)}, pool = new pg.Pool({ connectionString: url });
    await pool.query("CREATE TABLE orders (id text PRIMARY KEY)");
    const orders = pgTable("orders", { id: text("id").primaryKey() });
    const signerKey = "${account?.privateKey}", signer = "${account?.address}", RECIPIENT = "${RECIPIENT}";
    ${start.replace("confirmations: 20", "confirmations: 1").replace('awsKmsKeyIds: ["alias/payouts"]', "signers: [signerKey]")}
    ${blocks.join("\n")}
    const open = new Set(["order-42", "embed-1", "embed-2", "embed-3", "embed-4", "embed-5", "embed-6"]);
    for await (const { requestId, state } of fencepost.completions()) {
      if (state === "CONFIRMED") open.delete(requestId);
      if (open.size === 0) break;
    }
    const { rows } = await pool.query("SELECT 1 FROM orders");
    console.log("confirmed, with", rows.length, "orders");
    await fencepost.close();
    process.exit(0);`;
  return { name: "open-embed", text, said: /^confirmed, with 6 orders$/m };
}

/**
 * For each snippet, in order: code that creates the database library that the snippet uses. Prisma is imitated, because
 * its client must be generated; documents/prisma.test.ts tests the real client.
 */
const LIBRARIES = [
  "",
  "",
  "const db = drizzle(pool);",
  "const db = new Kysely({ dialect: new PostgresDialect({ pool }) });",
  'const knex = createKnex({ client: "pg", connection: url });',
  "const sql = postgres(url);",
  `const prisma = {
    $transaction: async (work) => {
      const client = await pool.connect();
      const insert = ({ data }) => client.query("INSERT INTO orders VALUES ($1)", [data.id]);
      const execute = async (query, ...values) => (await client.query(query, values)).rowCount;
      await client.query("BEGIN");
      await work({ orders: { create: insert }, $executeRawUnsafe: execute });
      await client.query("COMMIT");
      client.release();
    },
  };`,
];

function ofRpc(): RunnableSnippet {
  const text = `
    import { createWalletClient, http, publicActions } from "viem";
    import { foundry as chain } from "viem/chains";
    const secret = "none is asked for here";
    ${blocksOf("rpc.md").join("\n")}
    const hash = await wallet.sendTransaction({ to: "${RECIPIENT}", value: 1n });
    const { status } = await wallet.extend(publicActions).waitForTransactionReceipt({ hash });
    console.log((await wallet.getAddresses()).length, status);`;
  return { name: "open-rpc", text, said: /^\d+ success$/m };
}

function ofPools({ signers, url }: Stack): RunnableSnippet {
  const [send = "", config = "", sticky = ""] = blocksOf("pools.md");
  const [, one, other] = signers;
  const members = config.replace('["0x…", "0x…"]', `["${one}", "${other}"]`).replace('"0x…"', `"${one}"`);
  const text = `
    ${CLIENT}
    import { defineConfig } from "fencepost/config";
    const client = createClient({ url: "${url}" });
    const to = "${RECIPIENT}", payload = { to, value: 1n };
    ${send}
    ${sticky}
    ${members.replace("export default", "const config =")}
    const { signer } = await client.getByRequest({ pool: "payouts", requestId: "payout-17" });
    console.log(config.pools.payouts.includes(signer));`;
  return { name: "open-pools", text, said: /^true$/m };
}

/** A create in JSON with complete addresses and a deadline in the future. */
function ofTimeAndHolds({ signers, url }: Stack): RunnableSnippet {
  const [create = ""] = blocksOf("time-and-holds.md", "json");
  const body = create
    .replace("0xf39F…", signers[0] ?? "")
    .replace("0x7099…", RECIPIENT)
    .replace(/2026-[^"]+/, new Date(Date.now() + 3_600_000).toISOString());
  const text = `
    const body = ${JSON.stringify(body)};
    const headers = { "content-type": "application/json" };
    const answer = await fetch("${url}/api/v1/tx", { method: "POST", headers, body });
    console.log(answer.status, await answer.text());`;
  return { name: "open-time-and-holds", text, said: /^202 .*"requestId":"quote-7"/m };
}
