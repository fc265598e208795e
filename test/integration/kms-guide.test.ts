/**
 * Runs all commands of docs/kms.md as printed, in order, in one shell. Fakes replace what a test cannot have: the
 * clouds' command lines (the fakes record their arguments), psql, host names, and KMS itself (the fake signs with real
 * secp256k1).
 */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { expect, inject, onTestFinished } from "vitest";
import { it, KEYS, SIGNER } from "../support/integration.ts";
import { AWS_KEY, startAwsKms } from "../support/key-services.ts";
import { spawnProgram, type Variables } from "../support/node-process.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const root = new URL("../../", import.meta.url);
const page = readFileSync(new URL("docs/kms.md", root), "utf8");
const ARN = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
const GOOGLE = "Google Cloud instead of AWS";

/** The shell commands of each section of the page, by the section's title. */
const sections = page
  .split(/^## /m)
  .slice(1)
  .map((text) => {
    const title = text.split("\n", 1)[0] ?? "";
    return { title, commands: [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = ""]) => block).join("\n") };
  });

/**
 * Creates fake executables that precede all others in PATH. The fake command lines of the clouds record their
 * arguments, one line per call.
 */
function standIns(directory: string): string {
  const launcher = fileURLToPath(new URL("bin/fencepost.js", root));
  const psql = fileURLToPath(new URL("test/support/psql.mjs", root));
  const noting = (name: string) => `echo "${name} $*" >> "${directory}/told"`;
  const programs = {
    npx: `shift\nexec "${process.execPath}" "${launcher}" "$@"`,
    "../node_modules/.bin/fencepost": `exec "${process.execPath}" "${launcher}" "$@"`,
    psql: `exec "${process.execPath}" "${psql}" "$@"`,
    aws: `${noting("aws")}\ncase "$*" in *create-key*) echo "${ARN}" ;; esac`,
    gcloud: noting("gcloud"),
  };
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(directory, "bin", name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(directory, "bin", name), 0o755);
  }
  return `${join(directory, "bin")}:${process.env.PATH}`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { readonly port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Runs the sections in one shell. Returns the output of each by its title. */
async function run(titles: readonly string[], here: Readonly<Record<string, string>>, variables: Variables) {
  const { path, remove } = await makeTemporaryDirectory();
  onTestFinished(remove);
  await mkdir(join(path, "bin"));
  await mkdir(join(path, "node_modules", ".bin"), { recursive: true });
  const chosen = sections.filter(({ title }) => titles.includes(title));
  expect(chosen.map(({ title }) => title)).toEqual(titles);
  const script = chosen.map(({ title, commands }) => `${commands}\necho "<<${title}>>"`).join("\n");
  const local = Object.entries(here).reduce((text, [there, name]) => text.replaceAll(there, name), script);
  const argv = ["-euo", "pipefail", "-c", local];
  const shell = spawnProgram("bash", argv, { directory: path, variables: { ...variables, PATH: standIns(path) } });
  onTestFinished(() => endGroup(shell));
  const { code } = await shell.exited;
  const printed = new Map(
    shell
      .stdout()
      .split(/>>\n/)
      .map((part) => part.split("<<"))
      .map(([text = "", title = ""]) => [title, text]),
  );
  const file = (name: string) => readFileSync(join(path, name), "utf8");
  expect([code, shell.stderr()], shell.stdout()).toEqual([0, ""]);
  return { file, printed: (title: string) => printed.get(title) ?? "" };
}

function endGroup({ signalGroup }: ReturnType<typeof spawnProgram>): void {
  try {
    signalGroup("SIGKILL");
  } catch {
    // The process group has already ended.
  }
}

/** Unique names for roles and a database, because both are shared by the whole server. */
async function ownNames() {
  const { adminUrl, prefix } = inject("postgres");
  const [owner, runner, database] = ["guide_owner", "guide_runner", "guide"].map((name) => `${prefix}${name}`);
  const admin = new Client({ connectionString: adminUrl });
  await admin.connect();
  onTestFinished(async () => {
    await admin.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
    for (const role of [owner, runner]) await admin.query(`DROP ROLE IF EXISTS ${role}`);
    await admin.end();
  });
  const { host } = new URL(adminUrl);
  return {
    "postgres://postgres@db.internal/postgres": adminUrl,
    "@db.internal/fencepost": `@${host}/${database}`,
    "DATABASE fencepost": `DATABASE ${database}`,
    fencepost_owner: owner as string,
    fencepost_runner: runner as string,
  };
}

it("the guide to key services works command by command with AWS KMS", async ({ edr }) => {
  const kms = await startAwsKms({ [ARN]: KEYS[0] });
  onTestFinished(() => kms.close());
  const port = await freePort();
  const here = {
    ...(await ownNames()),
    "https://rpc-one.example,https://rpc-two.example": edr.url,
    "127.0.0.1:3000": `127.0.0.1:${port}`,
    '"chains": [1]': `"chains": [${edr.chainId}]`,
    "--chains 1": `--chains ${edr.chainId}`,
    "sleep 1": "sleep 0.1",
  };
  const titles = sections.map(({ title }) => title).filter((title) => title !== GOOGLE && title !== "Beyond this page");
  const { file, printed } = await run(titles, here, {
    AWS_ENDPOINT_URL_KMS: kms.url,
    AWS_ACCESS_KEY_ID: AWS_KEY.id,
    AWS_SECRET_ACCESS_KEY: AWS_KEY.secret,
    FENCEPOST_PORT: String(port),
    FENCEPOST_POLL_INTERVAL: "100ms",
    FENCEPOST_CONFIRMATIONS: "2",
  });

  expect(file("told").trim().split("\n")).toEqual([
    expect.stringMatching(/^aws kms create-key --key-spec ECC_SECG_P256K1 --key-usage SIGN_VERIFY /),
    expect.stringMatching(/^aws iam put-role-policy .*--policy-document file:\/\/sign-only\.json$/),
  ]);
  expect(JSON.parse(file("sign-only.json")).Statement).toEqual([
    { Effect: "Allow", Action: ["kms:Sign", "kms:GetPublicKey"], Resource: ARN },
  ]);
  expect(new Set(kms.requests.map(({ headers }) => headers["x-amz-target"]))).toEqual(
    new Set(["TrentService.GetPublicKey", "TrentService.Sign"]),
  );
  expect(printed("The node")).toContain(SIGNER);
  expect(printed("The node")).toMatch(/apiKeys +operator:\*\*\*/);
  const sent = printed("Send, and see it refused").split("\n");
  expect(sent.slice(0, 5).map((line) => JSON.parse(line))).toMatchObject([
    { nonce: 0, requestId: "order-1" },
    { status: 403, rule: "signer.to" },
    { status: 403, rule: "signer.maxValue.perTransaction" },
    { allowed: false, rule: "signer.maxValue.perTransaction" },
    { signers: [{ signer: SIGNER, day: { value: "50000000000000000" } }], keys: [{ key: "checkout" }] },
  ]);
  const [killed = "", ended = ""] = printed("Stop it").split("\n");
  expect(killed).toContain('"durable":true');
  expect(`${killed}${ended}`).toContain('"nonce":1');
  expect(printed("Stop it")).toContain('"rule":"scope:admin"');
  expect(printed("Stop it")).toContain("nothing is stopped");
  expect(printed("Stop it")).toContain("revoked checkout");
});

it("the guide to key services names a valid Google Cloud key version", async () => {
  const { file, printed } = await run([GOOGLE], {}, {});
  const output = file("told");
  expect(output).toContain(
    "--purpose asymmetric-signing --default-algorithm ec-sign-secp256k1-sha256 --protection-level hsm",
  );
  const version = "projects/payments/locations/europe-west1/keyRings/fencepost/cryptoKeys/payouts/cryptoKeyVersions/1";
  expect(printed(GOOGLE)).toMatch(new RegExp(`gcpKmsKeyVersions +${version}`));
});
