/**
 * Runs the Prisma snippet of docs/embed.md with a client that Prisma generated: `npm run test:docs`. Prisma's command
 * line would download a migration engine, which is not needed; a program that does nothing replaces it.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { spawnScript } from "../../support/node-process.ts";
import { blocksOf } from "../../support/open-snippets.ts";
import { npmInstall, pack } from "../../support/packed.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";

const VERSION = "7.10.0";
const SCHEMA = `
generator client {
  provider = "prisma-client"
  output   = "../generated"
}
datasource db {
  provider = "postgresql"
}
model Orders {
  id String @id
  @@map("orders")
}
`;
const CONFIG = `
import { defineConfig } from "prisma/config";
export default defineConfig({ schema: "prisma/schema.prisma", datasource: { url: "postgresql://nowhere/none" } });
`;

let stack: Stack;
let directory: TemporaryDirectory;

beforeAll(async () => {
  stack = await startFencepost();
  directory = await makeTemporaryDirectory();
  const write = (name: string, text: string) => writeFileSync(join(directory.path, name), text);
  mkdirSync(join(directory.path, "prisma"));
  write("package.json", JSON.stringify({ name: "app", private: true, type: "module" }));
  write("prisma/schema.prisma", SCHEMA);
  write("prisma.config.ts", CONFIG);
  const ofPrisma = ["prisma", "@prisma/client", "@prisma/adapter-pg"].map((name) => `${name}@${VERSION}`);
  // An unused part of Prisma's command line requires a newer Node, so disable the engine check.
  npmInstall(directory.path, ["--no-engine-strict", pack(directory.path), ...ofPrisma, "pg", "tsx"]);
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true" };
  execFileSync(join(directory.path, "node_modules/.bin/prisma"), ["generate"], {
    cwd: directory.path,
    env,
    stdio: "pipe",
  });
}, 300_000);
afterAll(async () => {
  await stack?.stop();
  await directory?.remove();
});

function script(): string {
  const snippet = blocksOf("embed.md").find((block) => block.includes("prisma.$transaction")) ?? "";
  const [, account] = stack.strangers;
  return `
    import { PrismaPg } from "@prisma/adapter-pg";
    import { createFencepost } from "fencepost";
    import pg from "pg";
    import { PrismaClient } from "./generated/client.ts";
    const url = ${JSON.stringify(stack.databaseUrl)};
    const pool = new pg.Pool({ connectionString: url });
    await pool.query("CREATE TABLE public.orders (id text PRIMARY KEY)");
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
    const fencepost = await createFencepost({
      databaseUrl: url,
      chains: [{ rpc: ${JSON.stringify(stack.rpcUrl)}, confirmations: 1 }],
      signers: ["${account?.privateKey}"],
    });
    const signer = "${account?.address}";
    const order = { id: "prisma-1" };
    const payment = { signer, requestId: order.id, payload: { to: signer, value: 1n } };
    ${snippet}
    // Rolled back: neither the order nor its payment.
    const never = { signer, requestId: "prisma-2", payload: { to: signer, value: 1n } };
    const undone = await prisma.$transaction(async (tx) => {
      await tx.orders.create({ data: { id: "prisma-2" } });
      await fencepost.send(never, { client: tx });
      throw new Error("undone");
    }).catch((error) => error.message);
    const outside = await fencepost.send(never, { client: prisma }).catch((error) => error.code);
    for await (const { requestId, state } of fencepost.completions()) {
      if (requestId === order.id && state === "CONFIRMED") break;
    }
    const { rows } = await pool.query("SELECT id FROM public.orders");
    const { items } = await fencepost.list({ signer });
    console.log(JSON.stringify({ undone, outside, orders: rows, sent: items.map(({ requestId }) => requestId) }));
    await fencepost.close();
    process.exit(0);`;
}

it("a payment sent inside a Prisma transaction commits and rolls back with it", { timeout: 120_000 }, async () => {
  writeFileSync(join(directory.path, "pay.ts"), script());
  const child = spawnScript(["--import", "tsx", "pay.ts"], { directory: directory.path });
  const { code } = await child.exited;
  expect(`${code} ${child.stderr()}`).toMatch(/^0 /);
  expect(JSON.parse(child.stdout().trim().split("\n").at(-1) ?? "")).toEqual({
    undone: "undone",
    outside: "INVALID_REQUEST",
    orders: [{ id: "prisma-1" }],
    sent: ["prisma-1"],
  });
});
