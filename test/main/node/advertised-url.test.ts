import { describe, expect, it } from "vitest";
import { advertisedUrl, type Machine } from "../../../src/main/node/advertised-url.ts";

const loopback = { address: "127.0.0.1", family: "IPv4", internal: true } as const;
const container = { address: "172.17.0.4", family: "IPv4", internal: false } as const;
const global = { address: "2001:db8::7", family: "IPv6", internal: false } as const;
const linkLocal = { address: "fe80::1", family: "IPv6", internal: false } as const;

function machine(...addresses: Machine["addresses"]): Machine {
  return { addresses, hostname: "box" };
}

describe("the URL that a node advertises by default", () => {
  it.each([["http://127.0.0.1:3000"], ["http://10.0.0.7:3000"], ["http://[::1]:3000"], ["http://box.local:3000"]])(
    "is the listening address or the machine's first external address: %s",
    (url) => {
      expect(advertisedUrl(url, machine(container))).toBe(url);
    },
  );

  it.each([["http://0.0.0.0:3000"], ["http://[::]:3000"]])("is never the wildcard %s", (url) => {
    expect(advertisedUrl(url, machine(loopback, linkLocal, global, container))).toBe("http://172.17.0.4:3000");
    expect(advertisedUrl(url, machine(loopback, linkLocal, global))).toBe("http://[2001:db8::7]:3000");
    expect(advertisedUrl(url, machine(loopback, linkLocal))).toBe("http://box:3000");
  });

  it("is found on the machine that runs the test", () => {
    expect(new URL(advertisedUrl("http://0.0.0.0:4000"))).toMatchObject({ port: "4000" });
    expect(advertisedUrl("http://0.0.0.0:4000")).not.toContain("0.0.0.0:");
  });
});
