import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { RepricingView } from "../../../src/domain/fees/repricing.ts";
import { openExtensions } from "../../../src/main/node/extensions.ts";
import type { StuckContext } from "../../../src/ports/stuck-hook.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";
import { WebhookReceiver } from "../../support/webhook-receiver.ts";

const nothing = {
  nodeId: "node-a",
  stuckHook: null,
  repricingModule: null,
  alertWebhook: null,
  hookNetworks: ["127.0.0.1"],
};
const context = { trigger: "headAge", txId: "t" } as Partial<StuckContext> as StuckContext;

let directory: TemporaryDirectory;
beforeAll(async () => {
  directory = await makeTemporaryDirectory();
});
afterAll(() => directory.remove());

async function fromModule(text: string, extension = "ts") {
  const path = join(directory.path, `hook.${extension}`);
  writeFileSync(path, text);
  return openExtensions({ config: { ...nothing, stuckHook: { place: path, secret: null } } });
}

describe("the extensions of an installation", () => {
  it("are none by default, except traces", async () => {
    const extensions = await openExtensions({ config: nothing });
    expect(extensions.sinks).toEqual([extensions.tracing?.sink]);
    expect(extensions).not.toHaveProperty("stuckHook");
    await extensions.close();
  });

  it.each([
    [
      "an object, in TypeScript",
      "export default { decide: (c: { txId: string }) => ({ action: 'NOOP', reason: c.txId }) };",
      "ts",
    ],
    ["a function, in JavaScript", "export default (c) => ({ action: 'NOOP', reason: c.txId });", "mjs"],
  ])("can include, as a stuck hook, %s", async (_, text, extension) => {
    const { stuckHook } = await fromModule(text, extension);
    expect(await stuckHook?.decide(context)).toEqual({ action: "NOOP", reason: "t" });
  });

  it.each([
    ["does not parse", "export default {"],
    ["throws while it loads", "throw new Error('no database');"],
    ["decides nothing", "export default { reason: 'none' };"],
    ["exports nothing", "const a = 1;"],
  ])("are refused in one line if the hook module %s", async (_, text) => {
    await expect(fromModule(text)).rejects.toMatchObject({
      name: "ConfigurationError",
      mistakes: [expect.stringMatching(/^FENCEPOST_STUCK_HOOK: .*hook\.ts [^\n]*$/)],
    });
  });

  it("are refused if the hook module does not exist", async () => {
    const config = { ...nothing, stuckHook: { place: "nowhere/hook.ts", secret: null } };
    await expect(openExtensions({ config })).rejects.toThrow("FENCEPOST_STUCK_HOOK: nowhere/hook.ts cannot be loaded");
  });

  describe("over HTTP", () => {
    const receiver = { current: new WebhookReceiver() };
    let url: string;
    beforeEach(async () => {
      receiver.current = new WebhookReceiver();
      url = await receiver.current.listen();
    });
    afterEach(() => receiver.current.close());

    it("send signed requests to the stuck hook", async () => {
      receiver.current.answer = (response) => response.end('{"action":"NOOP","reason":"r"}');
      const config = { ...nothing, stuckHook: { place: url, secret: "s3cret" } };
      const { stuckHook } = await openExtensions({ config });
      expect(await stuckHook?.decide(context)).toEqual({ action: "NOOP", reason: "r" });
      expect(receiver.current.received[0]?.headers["fencepost-signature"]).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/);
    });

    it("post alerts to the webhook", async () => {
      const extensions = await openExtensions({ config: { ...nothing, alertWebhook: { url, format: "slack" } } });
      for (const sink of extensions.sinks) sink({ type: "alert", severity: "ERROR", code: "TX_STUCK", message: "m" });
      await expect.poll(() => receiver.current.received.length).toBe(1);
      expect(JSON.parse(receiver.current.received[0]?.body ?? "")).toEqual({
        text: expect.stringContaining("TX_STUCK: m"),
      });
      await extensions.close();
    });
  });

  it.each([
    ["an object with a name", "export default { name: 'own', propose: () => null };", "own"],
    ["a function", "export default () => null;", "repricing-a function"],
  ])("can include, as a repricing strategy, %s", async (kind, text, name) => {
    const path = join(directory.path, `repricing-${kind}.mjs`);
    writeFileSync(path, text);
    const { repricing } = await openExtensions({ config: { ...nothing, repricingModule: path } });
    expect(repricing?.name).toContain(name);
    expect(repricing?.propose({} as RepricingView)).toBeNull();
  });

  it("are refused if the repricing module has no `propose`", async () => {
    const path = join(directory.path, "repricing-nothing.mjs");
    writeFileSync(path, "export default { decide: () => null };");
    await expect(openExtensions({ config: { ...nothing, repricingModule: path } })).rejects.toThrow(
      "FENCEPOST_REPRICING_MODULE",
    );
  });
});
