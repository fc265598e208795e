import { describe, expect, it } from "vitest";
import { mayBeAt, URL_PATTERN } from "../../../src/adapters/peers/url-patterns.ts";

describe("the configured pattern of node URLs", () => {
  it.each([
    ["https://node-*.relay.internal:3000", "https://node-a.relay.internal:3000"],
    ["http://10.0.*.*:*", "http://10.0.3.7:49152"],
    ["http://[fd00:*]:3000", "http://[fd00::1:2]:3000"],
    ["https://Relay.internal", "https://relay.internal"],
  ])("%s allows %s", (pattern, origin) => {
    expect(pattern).toMatch(URL_PATTERN);
    expect(mayBeAt(origin, [pattern])).toBe(true);
    expect(mayBeAt(origin, ["http://other", pattern])).toBe(true);
    expect(mayBeAt(origin, null)).toBe(true);
  });

  it.each([
    ["https://node-*.relay.internal:3000", "http://node-a.relay.internal:3000"],
    ["https://node-*.relay.internal:3000", "https://node-a.relay.internal:3001"],
    ["https://node-*.relay.internal:3000", "https://node-a.b.relay.internal:3000"],
    ["https://node-*.relay.internal", "https://node-a.relay.internal.evil.example"],
    ["https://node.relay.internal", "https://nodexrelay.internal"],
    ["http://10.0.0.*", "http://10.0.0.evil.example"],
    ["http://10.0.0.*", "http://evil.example"],
    // protects [Attacks] src/adapters/peers/url-patterns.ts, src/adapters/peers/http-peers.ts
  ])("%s does not allow %s", (pattern, origin) => {
    expect(mayBeAt(origin, [pattern])).toBe(false);
  });

  it.each([["node-a"], ["ftp://node"], ["https://user@node"], ["https://node/path"], ["https://(a|b)"], [""]])(
    "%s is refused as a pattern",
    (pattern) => {
      expect(pattern).not.toMatch(URL_PATTERN);
    },
  );
});
