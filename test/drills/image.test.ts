/**
 * Assembles the image's content from the lines of deploy/Dockerfile and runs it as a container does: under another
 * account, as process 1, on a read-only file system. Docker itself is not needed.
 */
import { execFile, spawn } from "node:child_process";
import { cp, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { freePort } from "../../src/main/dev/embedded/loopback-port.ts";
import { ROOT, readText } from "../architecture/tree.ts";
import { it, QUICK } from "../support/integration.ts";
import { mountedSecrets } from "../support/mounted-secrets.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const run = promisify(execFile);
const DOCKERFILE = readText("deploy/Dockerfile");
const SECRET = "a-secret-of-the-image-drill";
const CANNOT = "not root, or no unshare: the image's content is not run in namespaces of its own here";

/**
 * Copies the files named in the last stage's COPY lines. They are taken from this checkout instead of the build stage.
 */
async function assemble(image: string): Promise<void> {
  const last = DOCKERFILE.slice(DOCKERFILE.lastIndexOf("\nFROM "));
  for (const [, words = ""] of last.matchAll(/^COPY (?:--from=build )?(.+)$/gm)) {
    const sources = words.split(" ").map((source) => source.replace(/^\/build\//, ""));
    const target = sources.pop() ?? "";
    for (const source of sources) {
      const path = join(image, target.endsWith("/") ? join(target, source) : target);
      await mkdir(dirname(path), { recursive: true });
      await cp(join(ROOT, source), path, { recursive: true });
    }
  }
}

/** The words of ENTRYPOINT or CMD, with the image's folders replaced by local ones. */
function words(instruction: string, image: string): readonly string[] {
  const list = JSON.parse(new RegExp(`^${instruction} (\\[.+\\])$`, "m").exec(DOCKERFILE)?.[1] ?? "[]") as string[];
  return list.map((word) => word.replace("/nodejs/bin/node", process.execPath).replace("/app/", `${image}/app/`));
}

interface Container {
  readonly url: string;
  readonly exited: Promise<number | null>;
  output(): string;
  /** Sends a signal to process 1 of the container. */
  signal(name: NodeJS.Signals): Promise<void>;
}

describe("the container image's files, run without Docker,", () => {
  let directory: TemporaryDirectory;
  let image: string;
  let running: Container | null = null;

  beforeEach(async ({ skip }) => {
    const can = process.getuid?.() === 0 && (await run("unshare", ["--version"]).catch(() => null)) !== null;
    skip(!can, CANNOT);
    directory = await makeTemporaryDirectory();
    image = join(directory.path, "image");
    await assemble(image);
  });
  afterEach(async () => {
    await running?.signal("SIGKILL").catch(() => undefined);
    running = null;
    await directory?.remove();
  });

  const keepSecrets = (databaseUrl: string, rpcUrl: string) =>
    mountedSecrets(directory.path, { databaseUrl, rpcUrl, secret: SECRET });

  async function start(secrets: string): Promise<Container> {
    const port = await freePort();
    const command = [...words("ENTRYPOINT", image), ...words("CMD", image)];
    const inside = [
      "mount --bind --make-private / / && mount -o remount,bind,ro / && for place in /tmp /var/tmp /dev/shm; do " +
        "mount --bind $place $place 2>/dev/null && mount -o remount,bind,ro $place; done",
      // The file system is read-only now, even for root.
      `! touch ${join(image, "app/probe")} 2>/dev/null`,
      `cd ${join(image, "etc/fencepost")}`,
      `exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all ${command.join(" ")}`,
    ].join(" && ");
    const child = spawn("unshare", ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside], {
      env: {
        NODE_ENV: "production",
        CREDENTIALS_DIRECTORY: secrets,
        FENCEPOST_HOST: "127.0.0.1",
        FENCEPOST_PORT: String(port),
        FENCEPOST_POLL_INTERVAL: QUICK.FENCEPOST_POLL_INTERVAL,
        FENCEPOST_CONFIRMATIONS: QUICK.FENCEPOST_CONFIRMATIONS,
        PATH: process.env.PATH,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    const exited = new Promise<number | null>((resolve) => child.on("close", resolve));
    const first = () => readFile(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
    running = {
      url: `http://127.0.0.1:${port}`,
      exited,
      output: () => output,
      signal: async (name) => void process.kill(Number.parseInt(await first(), 10), name),
    };
    await waitUntil(() => {
      if (child.exitCode !== null) throw new Error(`it ended: ${output}`);
      return output.includes('{"ready":true');
    }, "the ready line");
    return running;
  }

  it("work as an unprivileged process on a read-only file system", async ({ database, simulated }) => {
    const container = await start(await keepSecrets(database.url, simulated.url));
    const client = createClient({ url: container.url, apiKey: SECRET, repeat: false });
    const { txId } = await client.send(pricedTransfer(0));
    expect(await client.waitFor(txId)).toMatchObject({ state: "CONFIRMED" });
    expect((await fetch(`${container.url}/readyz`)).status).toBe(200);
    expect(container.output(), "no secret in what it says").not.toContain(SECRET);

    const polling = client.completionsPage({ after: 1, wait: 30 });
    await container.signal("SIGTERM");
    expect((await polling).items, "what it has in hand is answered").toEqual([]);
    expect(await container.exited).toBe(0);
    const held = await database.query("SELECT 1 FROM fencepost.lane WHERE owner_instance IS NOT NULL");
    expect(held, "and nothing is held any more").toEqual([]);
  });

  it("include a health check that fails after the node ended", async ({ database, simulated }) => {
    const secrets = await keepSecrets(database.url, simulated.url);
    const container = await start(secrets);
    const [, check = "[]"] = /HEALTHCHECK[^\n]*\\\n\s+CMD (\[.+\])/.exec(DOCKERFILE) ?? [];
    const [program = "", ...argv] = (JSON.parse(check) as string[]).map((word) =>
      word.replace("/nodejs/bin/node", process.execPath).replace("/app/", `${image}/app/`),
    );
    const env = { CREDENTIALS_DIRECTORY: secrets, FENCEPOST_PORT: new URL(container.url).port };
    const options = { env, cwd: join(image, "etc/fencepost") };
    expect((await run(program, argv, options)).stdout).toMatch(/^ok: version /);
    await container.signal("SIGTERM");
    await container.exited;
    await expect(run(program, argv, options)).rejects.toMatchObject({ code: expect.any(Number) });
  });
});
