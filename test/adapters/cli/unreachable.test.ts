/** Each mistake in a node's address or key has its own message. */
import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, createServer as createTcp, type Server } from "node:net";
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { afterEach, describe, expect, it } from "vitest";
import { EXIT_CODES } from "../../../src/adapters/cli/failure.ts";
import { resolveReach } from "../../../src/main/config/resolve.ts";
import { remoteActions } from "../../../src/main/remote/node-to-ask.ts";
import { SERVER_CERTIFICATE, SERVER_KEY } from "../../support/certificates.ts";
import { runCommand } from "../../support/command.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: Server) {
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** The real client against a real address. The configuration and the profiles are fixed. */
function actionsFor(keys: string | null = null) {
  const variables = keys === null ? {} : { FENCEPOST_API_KEYS: `ops:${keys}` };
  const load = async () => resolveReach({ command: "config", variables, flags: {}, file: null });
  const profiles = {
    current: null,
    profiles: { prod: { url: "http://127.0.0.1:1", apiKey: "stored-in-the-profile" } },
  };
  return remoteActions({ load, readProfiles: async () => ({ file: "f", ...profiles }) }, () => undefined);
}

const ask = (argv: readonly string[], keys: string | null = null) => runCommand(argv, { actions: actionsFor(keys) });

const secureServer = () =>
  createHttps({ key: SERVER_KEY, cert: SERVER_CERTIFICATE }, (_, response) => response.end("{}"));

const answer401 = () =>
  createHttp((_, response) => {
    const problem = { type: "about:blank", title: "t", status: 401, code: "UNAUTHENTICATED", detail: "no valid key" };
    response.writeHead(401, { "content-type": "application/problem+json" }).end(JSON.stringify(problem));
  });

describe("a command that does not reach its node", () => {
  // protects [The command line] src/adapters/cli/unreachable.ts
  it("says that nothing listens", async () => {
    const port = await listen(createTcp());
    const [server] = servers.splice(0) as [Server];
    await new Promise((closed) => server.close(closed));
    const { code, stderr } = await ask(["nodes", "--url", `http://127.0.0.1:${port}`]);
    expect(code).toBe(EXIT_CODES.notReached);
    expect(stderr).toBe(
      `fencepost: nothing listens at http://127.0.0.1:${port}: start a node there, or name another one with --url or --profile\n`,
    );
  });

  it("says that the URL needs https, also if the certificate is not trusted", async () => {
    const port = await listen(secureServer());
    for (const command of ["nodes", "ready"]) {
      const { code, stderr } = await ask([command, "--url", `http://127.0.0.1:${port}`]);
      expect(stderr).toBe(`fencepost: http://127.0.0.1:${port} speaks https: use https://127.0.0.1:${port}\n`);
      expect(code).toBe(EXIT_CODES.notReached);
    }
    const { stderr } = await ask(["nodes", "--url", `https://127.0.0.1:${port}`]);
    expect(stderr).toMatch(/the certificate of https:\S+ \(\w+\) is not trusted.*NODE_EXTRA_CA_CERTS/);
  });

  it("says that the URL needs http", async () => {
    const port = await listen(answer401());
    const { code, stderr } = await ask(["nodes", "--url", `https://127.0.0.1:${port}`]);
    expect(stderr).toBe(`fencepost: https://127.0.0.1:${port} speaks http: use http://127.0.0.1:${port}\n`);
    expect(code).toBe(EXIT_CODES.notReached);
  });

  it("says that a proxy expects https, if it answers so in plain text", async () => {
    const secure = await listen(secureServer());
    const proxy = createHttp((_, response) => {
      response.writeHead(301, { location: `https://127.0.0.1:${secure}/` }).end();
    });
    const port = await listen(proxy);
    const { stderr } = await ask(["nodes", "--url", `http://127.0.0.1:${port}`]);
    expect(stderr, "https does not answer at that port, so it is not advised").not.toContain("use https:");
    expect(stderr).toContain("UNEXPECTED_ANSWER");
  });

  it("says that something else than HTTP listens, whichever parser reads it", async () => {
    // As an SSH server does, it keeps the connection open: fetch of Node 20 can miss a banner that the end follows at once.
    const banner = createTcp((socket) => socket.once("data", () => socket.write("SSH-2.0-OpenSSH_9.2\r\n")));
    const port = await listen(banner);
    const before = getGlobalDispatcher();
    // Importing undici replaces the dispatcher of Node's fetch for the rest of the process, unless there was one before.
    setGlobalDispatcher(new Agent());
    const { stderr } = await ask(["nodes", "--url", `http://127.0.0.1:${port}`]);
    setGlobalDispatcher(before);
    expect(stderr).toMatch(/is not a node: something listens there and does not speak http\n$/);
  });

  it.each([
    ["localhost:3000", "http://localhost:3000"],
    ["10.0.0.7:3000", "http://10.0.0.7:3000"],
    ["relay.example", "http://relay.example"],
    ["ftp://relay.example", "http://127.0.0.1:3000"],
    ["postgres://u@h/d", "http://127.0.0.1:3000"],
  ])("says that --url %s has no scheme of a node, before anything is sent", async (url, meant) => {
    for (const argv of [["kill", "--yes"], ["ready"], ["profile", "add", "p"]]) {
      const { code, stderr } = await ask([...argv, "--url", url]);
      expect(stderr).toMatch(/^fencepost: --url \S+ is no URL of a node, which begins with http:\/\/ or https:\/\/: /);
      expect(stderr).toContain(`: ${meant}; see fencepost ${argv[0]}`);
      expect(code).toBe(EXIT_CODES.misused);
    }
  });

  it("quotes what answered instead of a node in one line, without sequences for the terminal", async () => {
    const page = createHttp((_, response) =>
      response.writeHead(404).end("<html>\n<title>\u001b[2J\u0007no</title>\r\n"),
    );
    const { stderr } = await ask(["nodes", "--url", `http://127.0.0.1:${await listen(page)}`]);
    expect(stderr).toMatch(/^fencepost: UNEXPECTED_ANSWER: .*<html> <title> \[2J no<\/title>.*is --url a node's.*\n$/);
  });

  it("says that there is no such host", async () => {
    const { code, stderr } = await ask(["nodes", "--url", "http://fencepost.invalid:3000"]);
    expect(stderr).toBe(
      "fencepost: there is no host of this name: http://fencepost.invalid:3000; is the URL right, and the name server reachable?\n",
    );
    expect(code).toBe(EXIT_CODES.notReached);
  });
});

describe("a command that its node does not let in", () => {
  it("distinguishes a missing key from a wrong one, and names the source of the wrong one", async () => {
    const url = `http://127.0.0.1:${await listen(answer401())}`;
    const none = await ask(["nodes", "--url", url]);
    expect(none.code).toBe(EXIT_CODES.refused);
    expect(none.stderr).toMatch(/requires a key, and none was sent: give --api-key or --profile/);
    const given = await ask(["nodes", "--url", url, "--api-key", "mistyped-secret"]);
    expect(given.stderr).toMatch(/does not accept the key of --api-key: it was mistyped or revoked/);
    const configured = await ask(["nodes", "--url", url], "configured-secret-of-ops");
    expect(configured.stderr).toMatch(/does not accept the key of the configuration \(FENCEPOST_API_KEYS\)/);
    for (const { stderr } of [given, configured]) expect(stderr).not.toMatch(/mistyped-secret|configured-secret/);
  });
});
