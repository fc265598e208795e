/**
 * Builds deploy/Dockerfile with a real Docker daemon from the files that git tracks, and runs it as docs/deployment.md
 * describes.
 */
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, vi } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { freePort } from "../../src/main/dev/embedded/loopback-port.ts";
import { baseImages, copyTrackedFiles, docker, missingFor, tryDocker } from "../support/docker.ts";
import { it, QUICK } from "../support/integration.ts";
import { mountedSecrets } from "../support/mounted-secrets.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 900_000 });

const TAG = `fencepost:test-${process.pid}`;
const SECRET = "a-secret-of-the-image-test";
const BASES = baseImages();
const missing = await missingFor(BASES);
if (missing !== null)
  process.stderr.write(`\n!! ${missing}: deploy/Dockerfile was NOT built, and no image was run.\n\n`);

const LOCKED = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges:true"];
const FENCEPOST = ["/nodejs/bin/node", "/app/bin/fencepost.js"];

describe("the Docker image", () => {
  let checkout: TemporaryDirectory;
  let directory: TemporaryDirectory;
  const containers: string[] = [];

  beforeAll(async () => {
    if (missing !== null) return;
    checkout = await makeTemporaryDirectory();
    await copyTrackedFiles(checkout.path);
    await docker("build", "--file", join(checkout.path, "deploy/Dockerfile"), "--tag", TAG, checkout.path);
  });
  afterAll(async () => {
    if (missing !== null) return;
    await docker("image", "rm", "--force", TAG);
    await checkout.remove();
  });

  beforeEach(async ({ skip }) => {
    skip(missing !== null, `${missing}: no image to run`);
    directory = await makeTemporaryDirectory();
  });
  afterEach(async () => {
    for (const name of containers.splice(0)) await tryDocker("rm", "--force", "--volumes", name);
    await directory?.remove();
  });

  const keepSecrets = (databaseUrl: string, rpcUrl: string) =>
    mountedSecrets(directory.path, { databaseUrl, rpcUrl, secret: SECRET });

  /** Starts a container on this machine's network, on which the tests' database and chain run. */
  async function start(secrets: string, ...argv: readonly string[]) {
    const port = await freePort();
    const variables = {
      FENCEPOST_HOST: "127.0.0.1",
      FENCEPOST_PORT: String(port),
      FENCEPOST_POLL_INTERVAL: QUICK.FENCEPOST_POLL_INTERVAL,
      FENCEPOST_CONFIRMATIONS: QUICK.FENCEPOST_CONFIRMATIONS,
    };
    const env = Object.entries(variables).map(([name, value]) => `--env=${name}=${value}`);
    const mount = `--volume=${secrets}:/run/secrets:ro`;
    const id = await docker("run", "--detach", "--network=host", ...LOCKED, mount, ...env, ...argv, TAG);
    containers.push(id);
    const logs = async () => {
      const { stdout, stderr } = await tryDocker("logs", id);
      return stdout + stderr;
    };
    const inspect = (format: string) => docker("inspect", "--format", format, id);
    return {
      id,
      url: `http://127.0.0.1:${port}`,
      logs,
      inspect,
      /** Runs a command of the image in the running container. */
      say: (command: string) => tryDocker("exec", id, ...FENCEPOST, command),
      untilReady: () =>
        waitUntil(
          async () => {
            if ((await inspect("{{.State.Running}}")) !== "true") throw new Error(`it ended: ${await logs()}`);
            return (await logs()).includes('{"ready":true');
          },
          "the ready line",
          { giveUpMs: 120_000, everyMs: 200 },
        ),
    };
  }

  it("is built without a warning, and adds less than 20 MB to its Node base image", async () => {
    const { stdout, stderr } = await tryDocker(
      ...["build", "--check", "--file", join(checkout.path, "deploy/Dockerfile"), checkout.path],
    );
    expect(stdout + stderr).toContain("no warnings found");
    const sizes = await Promise.all(
      [TAG, BASES[1]].map((name) => docker("image", "inspect", "--format={{.Size}}", name)),
    );
    const [whole = Number.NaN, base = Number.NaN] = sizes.map(Number);
    process.stderr.write(
      `the image has ${Math.round(whole / 1e6)} MB, ${Math.round((whole - base) / 1e6)} of them Fencepost\n`,
    );
    expect(whole - base).toBeLessThan(20_000_000);
  });

  it("has no shell", async () => {
    for (const shell of ["/bin/sh", "/bin/bash", "/busybox/sh", "npm"]) {
      const { code } = await tryDocker("run", "--rm", `--entrypoint=${shell}`, TAG);
      expect(code, shell).toBe(127);
    }
    const walk = `
      const fs = require("node:fs");
      const open = [];
      for (const root of ["/app", "/etc", "/nodejs"]) for (const name of ["", ...fs.readdirSync(root, { recursive: true })]) {
        const path = root + "/" + name;
        const { uid, mode } = fs.lstatSync(path);
        if (uid === process.getuid() || ((mode & 0o022) !== 0 && (mode & 0o170000) !== 0o120000)) open.push(path);
      }
      console.log(JSON.stringify({ uid: process.getuid(), gid: process.getgid(), open }));`;
    const said = await docker("run", "--rm", "--entrypoint=/nodejs/bin/node", TAG, "-e", walk);
    expect(JSON.parse(said)).toEqual({ uid: 65532, gid: 65532, open: [] });
  });

  it("sends and tracks a transaction with keys from secret files and a separate signing process", async ({
    database,
    simulated,
  }) => {
    const node = await start(await keepSecrets(database.url, simulated.url));
    await node.untilReady();
    const client = createClient({ url: node.url, apiKey: SECRET, repeat: false });
    const { txId } = await client.send(pricedTransfer(0));
    expect(await client.waitFor(txId)).toMatchObject({ state: "CONFIRMED" });
    const processes = await docker("top", node.id, "-eo", "pid,ppid,uid,args");
    expect(processes.split("\n").slice(1), "Node and the process that signs, nobody's").toEqual([
      expect.stringMatching(/ 65532 +\/nodejs\/bin\/node .*fencepost\.js start$/),
      expect.stringMatching(/ 65532 +fencepost-sign/),
    ]);
    const status = await waitUntil(
      async () => {
        const health = await node.inspect("{{.State.Health.Status}}");
        return health === "starting" ? null : health;
      },
      "the health check has an answer",
      { giveUpMs: 120_000, everyMs: 500 },
    );
    expect(status).toBe("healthy");

    const polling = client.completionsPage({ after: 1, wait: 30 });
    const [answered] = await Promise.all([polling, docker("stop", "--time=20", node.id)]);
    expect(answered.items, "what it has in hand is answered").toEqual([]);
    expect(await node.inspect("{{.State.ExitCode}} {{.State.OOMKilled}}"), "it ended by itself").toBe("0 false");
    const held = await database.query("SELECT 1 FROM fencepost.lane WHERE owner_instance IS NOT NULL");
    expect(held, "nothing is held any more").toEqual([]);

    const lines = (await node.logs()).trim().split("\n");
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) expect(() => JSON.parse(line), line).not.toThrow();
    expect(lines.join("\n"), "no secret in what it says").not.toContain(SECRET);
  });

  it("survives a database outage: healthy but not ready, then ready again by itself", async ({
    database,
    simulated,
  }) => {
    const wire = await TcpProxy.start(Number(new URL(database.url).port));
    try {
      const node = await start(await keepSecrets(wire.through(database.url), simulated.url));
      await node.untilReady();
      await waitUntil(async () => (await node.say("ready")).code === 0, "it is ready");
      wire.refuse();
      wire.cut();
      const refused = await waitUntil(async () => {
        const ran = await node.say("ready");
        return ran.code === 0 ? null : ran;
      }, "it is not ready any more");
      expect(refused).toMatchObject({ code: 1, stdout: expect.stringMatching(/^database +not reachable$/m) });
      expect(await node.say("health")).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok: version /) });
      wire.admit();
      await waitUntil(async () => (await node.say("ready")).code === 0, "it is ready again", { giveUpMs: 60_000 });
      expect(await node.inspect("{{.RestartCount}} {{.State.Running}}")).toBe("0 true");
    } finally {
      await wire.close();
    }
  });

  it("exits with code 2 and names the file if a secret file is not readable", async ({ skip }) => {
    skip(process.getuid?.() !== 0, "not root: whose files the container cannot read cannot be made here");
    const secrets = await keepSecrets("postgres://nobody@127.0.0.1:1/none", "http://127.0.0.1:1");
    await chmod(secrets, 0o700);
    const node = await start(secrets);
    expect(await docker("wait", node.id)).toBe("2");
    expect(await node.logs()).toMatch(/EACCES.*\/run\/secrets\/database-url/);
  });

  it("exits with code 2 and lists every missing setting, without secrets", async () => {
    const node = await start(directory.path);
    expect(await docker("wait", node.id)).toBe("2");
    const said = await node.logs();
    for (const name of ["DATABASE_URL", "RPC_URL", "API_KEYS"])
      expect(said).toContain(`FENCEPOST_${name}: is required`);
  });
});
