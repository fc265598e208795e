import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { guardedFetch } from "../../../src/adapters/webhooks/guarded-fetch.ts";
import { addressGuard, isNetwork } from "../../../src/adapters/webhooks/networks.ts";
import { postJson } from "../../../src/adapters/webhooks/post-json.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { createHastyClock } from "../../support/hasty-clock.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Starts an HTTP server on this machine that listens on all of its addresses. */
async function serve(listener: RequestListener) {
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    listener(request, response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, resolve));
  return { port: (server.address() as AddressInfo).port, asked: () => asked };
}

/** A fake DNS lookup that returns the given addresses. */
function resolving(...addresses: readonly string[]): LookupFunction {
  return (_, __, callback) => {
    const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    callback(null, found);
  };
}

function post(url: string, fetch: typeof globalThis.fetch) {
  const ports = { clock: createHastyClock(), entropy: createSeededEntropy(1), fetch };
  return postJson(ports, { url, headers: {}, body: "{}", timeoutMs: 1_000, tries: 1 });
}

describe("the address guard for outgoing hooks", () => {
  it.each([
    ["127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1"],
    ["169.254.169.254", "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255", "not an address", ""],
    ["::", "::1", "fd00::1", "fc00::1", "fe80::1", "fe80::1%eth0", "ff02::1", "64:ff9b::a00:1", "2002:a00:1::"],
    ["::ffff:10.0.0.1", "::ffff:a00:1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::10.0.0.1", "fd00:ec2::254"],
  ])("treats %s, %s, %s, %s and similar addresses as private", (...addresses) => {
    expect(addresses.filter(addressGuard([]))).toEqual([]);
  });

  it.each([["1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1"]])(
    "treats %s, %s, %s and similar addresses as public",
    (...addresses) => {
      expect(addresses.filter(addressGuard([]))).toEqual(addresses);
    },
  );

  it("permits private addresses of the configured networks only", () => {
    const mayConnect = addressGuard(["10.1.0.0/16", "::1"]);
    expect(["10.1.2.3", "::ffff:10.1.2.3", "::1"].map(mayConnect)).toEqual([true, true, true]);
    expect(["10.2.0.1", "127.0.0.1", "::2"].map(mayConnect)).toEqual([false, false, false]);
  });

  it("accepts only valid notations of addresses and networks in its configuration", () => {
    expect(["127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"].map(isNetwork)).toEqual([true, true, true, true]);
    expect(["", "localhost", "10.0.0.0/33", "10.0.0.0/", "10/8", "::/129", "1.1.1.1/8/8"].filter(isNetwork)).toEqual(
      [],
    );
  });
});

describe("a post to a hook", () => {
  it.each([["127.0.0.1"], ["169.254.169.254"], ["fd00::1"], ["::ffff:10.0.0.1"], ["::1"]])(
    // protects [Attacks] src/adapters/webhooks/guarded-fetch.ts, src/adapters/webhooks/networks.ts
    "is not sent if the URL's host name resolves to the private address %s",
    async (address) => {
      const { port, asked } = await serve((_, response) => response.end("{}"));
      const reached = post(`http://hook.example:${port}/`, guardedFetch([], "fencepost/0.0.0", resolving(address)));
      await expect(reached).rejects.toThrow("it cannot be reached (private address)");
      expect(asked()).toBe(0);
    },
  );

  // protects [Attacks] src/adapters/webhooks/guarded-fetch.ts, src/adapters/webhooks/networks.ts
  it("is not sent if one of several resolved addresses is private", async () => {
    const { port, asked } = await serve((_, response) => response.end("{}"));
    const fetch = guardedFetch([], "fencepost/0.0.0", resolving("1.1.1.1", "127.0.0.1"));
    await expect(post(`http://hook.example:${port}/`, fetch)).rejects.toThrow("private address");
    expect(asked()).toBe(0);
  });

  it.each(["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost", "2130706433", "0x7f.1", "0"])(
    // protects [Attacks] src/adapters/webhooks/guarded-fetch.ts, src/adapters/webhooks/networks.ts
    "is not sent if the URL's host is %s, which resolves to a private address",
    async (host) => {
      const { port, asked } = await serve((_, response) => response.end("{}"));
      await expect(post(`http://${host}:${port}/`, guardedFetch([], "fencepost/0.0.0"))).rejects.toThrow(
        "private address",
      );
      expect(asked()).toBe(0);
    },
  );

  it("is sent to a private address of a configured network, given by host name or by address", async () => {
    const { port } = await serve((_, response) => response.end("taken"));
    const fetch = guardedFetch(["127.0.0.0/8"], "fencepost/0.0.0", resolving("127.0.0.1"));
    expect(await post(`http://hook.example:${port}/`, fetch)).toBe("taken");
    expect(await post(`http://127.0.0.1:${port}/`, fetch)).toBe("taken");
  });

  it("names its sender", async () => {
    const { port } = await serve((request, response) => response.end(request.headers["user-agent"]));
    const fetch = guardedFetch(["127.0.0.1"], "fencepost/0.0.0");
    expect(await post(`http://127.0.0.1:${port}/`, fetch)).toBe("fencepost/0.0.0");
  });

  // protects [Attacks] src/adapters/webhooks/post-json.ts
  it("follows no redirect", async () => {
    const { port, asked } = await serve((_, response) => response.writeHead(307, { location: "/elsewhere" }).end());
    await expect(post(`http://127.0.0.1:${port}/`, guardedFetch(["127.0.0.1"], "fencepost/0.0.0"))).rejects.toThrow();
    expect(asked()).toBe(1);
  });

  // protects [Attacks] src/adapters/webhooks/post-json.ts
  it("fails if the response body is endless or the response too slow", async () => {
    const endless = await serve((_, response) => {
      const more = () => void response.write("x".repeat(64 * 1024), () => more());
      more();
    });
    const fetch = guardedFetch(["127.0.0.1"], "fencepost/0.0.0");
    await expect(post(`http://127.0.0.1:${endless.port}/`, fetch)).rejects.toThrow("more than 262144 bytes");
    const slow = await serve((_, response) => void response.write("{"));
    await expect(post(`http://127.0.0.1:${slow.port}/`, fetch)).rejects.toThrow("no HTTP response in 1000 ms");
  });

  // protects [Attacks] src/adapters/webhooks/post-json.ts
  it("fails with an error that names neither host nor address", async () => {
    const fetch = guardedFetch(["127.0.0.1"], "fencepost/0.0.0", (_, __, callback) =>
      callback(Object.assign(new Error("getaddrinfo ENOTFOUND secret.example"), { code: "ENOTFOUND" }), []),
    );
    await expect(post("https://secret.example/", fetch)).rejects.toThrow(/^it cannot be reached \(ENOTFOUND\)$/);
    const { port } = await serve(() => undefined);
    await new Promise((resolve) => servers.pop()?.close(resolve));
    await expect(post(`http://127.0.0.1:${port}/`, fetch)).rejects.toThrow(/^it cannot be reached \(ECONNREFUSED\)$/);
  });
});
