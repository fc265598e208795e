/** Shows the two lines, and runs both apps as two replicas with one account: ten payments each, at the same time. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startFencepost } from "fencepost/testing";

const run = promisify(execFile);

async function linesOf(name: string): Promise<readonly string[]> {
  const text = await readFile(new URL(`../${name}.ts`, import.meta.url), "utf8");
  return text.split("\n").filter((line) => !line.startsWith("import "));
}

const [plain, moved] = await Promise.all([linesOf("plain"), linesOf("moved")]);
for (const line of plain.filter((each) => !moved.includes(each))) console.log(`-${line}`);
for (const line of moved.filter((each) => !plain.includes(each))) console.log(`+${line}`);

const stack = await startFencepost({ signers: 1 });
const [stranger] = stack.strangers;
const env = {
  KEY: stranger?.privateKey,
  SIGNER: stack.signers[0],
  RPC_URL: stack.rpcUrl,
  NODE_URL: stack.url,
};

async function twoReplicas(name: string): Promise<number> {
  const script = fileURLToPath(new URL(`${name}.js`, import.meta.url));
  const both = await Promise.all([1, 2].map(() => run(process.execPath, [script], { env })));
  return both.reduce((sum, { stdout }) => sum + Number(stdout), 0);
}

console.log(`plain viem: ${await twoReplicas("plain")} of 20 payments arrived`);
console.log(`through Fencepost: ${await twoReplicas("moved")} of 20 payments arrived`);
await stack.stop();
