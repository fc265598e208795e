/**
 * Runs deploy/systemd/fencepost.service under a real systemd, installed by the commands of docs/deployment.md, in a
 * container that replaces a machine.
 */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, vi } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { freePort } from "../../src/main/dev/embedded/loopback-port.ts";
import { version } from "../../src/main/node/version.ts";
import { readText } from "../architecture/tree.ts";
import { baseImages, docker, missingFor, tryDocker } from "../support/docker.ts";
import { it, KEYS, QUICK } from "../support/integration.ts";
import { pack } from "../support/packed.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { pricedTransfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 900_000 });

const SECRET = "a-secret-of-the-systemd-test";
const TAG = `fencepost-systemd-test:${process.pid}`;
const [NODE] = baseImages();
const [, INSTALL = ""] = /## systemd\n[^#]+?```sh\n([^`]+)```/.exec(readText("docs/deployment.md")) ?? [];

/** Image of a machine with systemd and Node. Building it needs Debian's mirror, which may be unreachable. */
const MACHINE = `FROM ${NODE}
RUN apt-get update -q && apt-get install -y -q --no-install-recommends systemd dbus && ln -sf "$(command -v node)" /usr/bin/node \\
 && systemctl mask systemd-networkd-wait-online.service systemd-resolved.service
CMD ["/lib/systemd/systemd"]
`;

async function prepareMachine(directory: string): Promise<string | null> {
  const missing = await missingFor([NODE]);
  if (missing !== null) return missing;
  writeFileSync(join(directory, "Dockerfile"), MACHINE);
  const { code, stderr } = await tryDocker("build", "--quiet", "--tag", TAG, directory);
  return code === 0 ? null : `no machine with systemd can be built (${stderr.trim().split("\n").at(-1)})`;
}

describe("the service unit under systemd", () => {
  let directory: TemporaryDirectory;
  let machine = "";
  let missing: string | null = null;

  beforeAll(async () => {
    directory = await makeTemporaryDirectory();
    const context = join(directory.path, "machine");
    mkdirSync(context);
    missing = await prepareMachine(context);
    if (missing !== null) process.stderr.write(`\n!! ${missing}: the systemd unit was NOT started.\n\n`);
    if (missing !== null) return;
    const cgroups = ["--privileged", "--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"];
    machine = await docker("run", "--detach", "--network=host", ...cgroups, "--tmpfs=/run", "--tmpfs=/run/lock", TAG);
    await waitUntil(
      async () => /running|degraded/.test((await sh("systemctl is-system-running")).stdout),
      "systemd is up",
    );
    // systemd mounts credentials, for which the file system must be a shared mount. systemd makes it shared when a
    // machine boots, but not in a container.
    await sh("mount --make-rshared /");
    const packed = pack(directory.path);
    await docker("cp", packed, `${machine}:/srv/fencepost.tgz`);
    const lines = INSTALL.replace(`fencepost@${version}`, "/srv/fencepost.tgz");
    expect(lines).not.toBe(INSTALL);
    expect(await sh(`set -e\n${lines}`)).toMatchObject({ code: 0 });
  });
  afterAll(async () => {
    if (machine !== "") await tryDocker("rm", "--force", "--volumes", machine);
    await tryDocker("image", "rm", "--force", TAG);
    await directory.remove();
  });

  const sh = (script: string) => tryDocker("exec", machine, "sh", "-c", script);
  const property = async (name: string) =>
    (await sh(`systemctl show --value --property=${name} fencepost`)).stdout.trim();
  const journal = async () => (await sh("journalctl --unit fencepost --output cat --no-pager")).stdout;

  async function configure(databaseUrl: string, rpcUrl: string): Promise<string> {
    const secrets = {
      "database-url": databaseUrl,
      "rpc-url": rpcUrl,
      "api-keys": `app:${SECRET}`,
      "signer-keys": KEYS[0],
    };
    for (const [name, value] of Object.entries(secrets)) {
      const path = join(directory.path, name);
      writeFileSync(path, `${value}\n`);
      chmodSync(path, 0o600);
      await docker("cp", path, `${machine}:/etc/fencepost/secrets/${name}`);
    }
    const port = await freePort();
    const settings = { FENCEPOST_PORT: port, ...{ FENCEPOST_POLL_INTERVAL: QUICK.FENCEPOST_POLL_INTERVAL } };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    await sh(`printf '%s\\n' ${lines.join(" ")} > /etc/fencepost/environment && chown -R root:root /etc/fencepost`);
    return `http://127.0.0.1:${port}`;
  }

  it("restarts the node after a kill", async ({ database, simulated, skip }) => {
    skip(missing !== null, `${missing}: the unit was not started`);
    const url = await configure(database.url, simulated.url);
    expect(await sh("systemctl daemon-reload && systemctl enable --now fencepost")).toMatchObject({ code: 0 });
    const isReady = async () => {
      if ((await property("ActiveState")) === "failed") throw new Error(await journal());
      return (await fetch(`${url}/readyz`).catch(() => null))?.status === 200;
    };
    await waitUntil(isReady, "the node is ready", { giveUpMs: 60_000, everyMs: 200 });
    const client = createClient({ url, apiKey: SECRET });
    const sent = await client.send(pricedTransfer(0));
    expect(await client.waitFor(sent.txId)).toMatchObject({ state: "CONFIRMED" });
    const { stdout: account } = await sh(`stat --format=%u /proc/${await property("MainPID")}`);
    expect(Number(account), "a user of its own, of systemd's dynamic range").toBeGreaterThanOrEqual(61_184);

    await sh("systemctl kill --signal=KILL fencepost");
    await waitUntil(async () => (await property("NRestarts")) === "1", "it is started again", { everyMs: 200 });
    await waitUntil(isReady, "it is ready again", { giveUpMs: 60_000, everyMs: 200 });

    expect(await sh("systemctl stop fencepost")).toMatchObject({ code: 0 });
    expect([await property("Result"), await property("ExecMainStatus")]).toEqual(["success", "0"]);
    const held = await database.query("SELECT 1 FROM fencepost.lane WHERE owner_instance IS NOT NULL");
    expect(held, "nothing is held any more").toEqual([]);

    await sh("echo FENCEPOST_POLL_INTERVAL=often >> /etc/fencepost/environment; systemctl start fencepost");
    await waitUntil(async () => (await property("ActiveState")) === "failed", "it has given up", { everyMs: 200 });
    expect(await property("ExecMainStatus")).toBe("2");
    const said = await journal();
    expect(said).toContain("FENCEPOST_POLL_INTERVAL");
    expect(said, "no secret in the journal").not.toContain(SECRET);
  });
});
