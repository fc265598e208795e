/** The wire of a campaign: what it does to real connections. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock as clock } from "../../../../src/adapters/system/clock.ts";
import { openWire, type Wire } from "../../../../src/main/dev/chaos/wire.ts";
import { LOOPBACK, portOf } from "../../../../src/main/dev/embedded/loopback-port.ts";
import { waitUntil } from "../../../support/wait-until.ts";

/** `once` would reject, because the connection breaks with an error first. */
const closed = (socket: Socket) => new Promise((resolve) => socket.once("close", resolve));

describe("a wire", () => {
  let server: Server;
  let wire: Wire;
  /** What the server has received, over all connections. */
  let received: string;
  let client: Socket;
  /** What the client has received. */
  let answered: string;

  beforeEach(async () => {
    received = "";
    answered = "";
    server = createServer((socket) => {
      socket.on("data", (bytes) => {
        received += bytes;
        socket.write(bytes.toString().toUpperCase());
      });
      socket.on("error", () => undefined);
    });
    await once(server.listen(0, LOOPBACK), "listening");
    wire = await openWire(clock, () => portOf(server));
    client = connect(wire.port, LOOPBACK).setEncoding("utf8");
    client.on("data", (text) => {
      answered += text;
    });
    client.on("error", () => undefined);
    await once(client, "connect");
  });

  afterEach(async () => {
    client.destroy();
    await wire.close();
    await once(server.close(), "close");
  });

  const say = async (text: string) => {
    client.write(text);
    await waitUntil(() => answered.endsWith(text.toUpperCase()), "the answer is there");
  };

  it("carries requests and answers", async () => {
    await say("a");
    expect({ received, answered }).toEqual({ received: "a", answered: "A" });
  });

  it("breaks connections when it is cut, and refuses new ones until it is whole", async () => {
    await say("a");
    const broken = closed(client);
    wire.become({ cut: true });
    await broken;
    const refused = connect(wire.port, LOOPBACK);
    refused.on("error", () => undefined);
    await closed(refused);
    wire.become({});
    client = connect(wire.port, LOOPBACK).setEncoding("utf8");
    client.on("data", (text) => {
      answered += text;
    });
    await say("b");
    expect(received).toBe("ab");
  });

  it("keeps requests back while their direction is blocked, and delivers them in order afterwards", async () => {
    await say("a");
    wire.become({ blocked: "requests" });
    client.write("b");
    client.write("c");
    // The other connection shows that the server could have received them by now.
    const other = connect(portOf(server), LOOPBACK);
    other.write("x");
    await once(other, "data");
    expect(received).toBe("ax");
    wire.become({});
    await waitUntil(() => answered === "ABC", "every answer is there");
    expect(received).toBe("axbc");
    other.destroy();
  });

  it("keeps answers back while their direction is blocked: the server has done the work", async () => {
    await say("a");
    wire.become({ blocked: "answers" });
    client.write("b");
    await waitUntil(() => received === "ab", "every request is there");
    expect(answered).toBe("A");
    wire.become({});
    await waitUntil(() => answered === "AB", "every answer is there");
  });

  it("delivers later while it is slow, and never out of order", async () => {
    wire.become({ delayMs: 200 });
    const fromMs = clock.monotonicMs();
    client.write("a");
    await waitUntil(() => received === "a", "every request is there");
    expect(clock.monotonicMs() - fromMs).toBeGreaterThanOrEqual(199);
    client.write("b");
    wire.become({});
    client.write("c");
    await waitUntil(() => received === "abc", "every request is there");
  });
});
