// Does `psql URL < statements` without psql: runs one statement after the other, each in a transaction of its own.
import { text } from "node:stream/consumers";
import { Client } from "pg";

const client = new Client({ connectionString: process.argv[2] });
await client.connect();
for (const statement of (await text(process.stdin)).split(/;\s*\n/)) {
  if (statement.trim() !== "") await client.query(statement);
}
await client.end();
