import { describe, expect, it } from "vitest";
import { createMask } from "../../../src/domain/text/mask.ts";
import { maskedHook, maskedSigner } from "../../../src/main/node/masked-ports.ts";
import { type Signer, SignerAway, SigningRefused } from "../../../src/ports/signer.ts";
import type { StuckContext, StuckDecision } from "../../../src/ports/stuck-hook.ts";

const SECRET = "hunter2hunter2";
const mask = createMask([SECRET]);
const context = {} as Partial<StuckContext> as StuckContext;

describe("secrets are masked", () => {
  // protects [Attacks] src/main/node/masked-ports.ts
  it("in the reason and audit of a hook's decision, but not in its payload", async () => {
    const payload = { to: null, data: SECRET };
    const decided = { action: "REPLACE", reason: `by ${SECRET}`, audit: { deep: [SECRET] }, payload } as StuckDecision;
    const hook = maskedHook({ decide: () => decided }, mask);
    expect(await hook.decide(context)).toEqual({
      action: "REPLACE",
      reason: "by ***",
      audit: { deep: ["***"] },
      payload,
    });
    const nonsense = maskedHook({ decide: () => "nonsense" as unknown as StuckDecision }, mask);
    expect(await nonsense.decide(context)).toBe("nonsense");
  });

  // protects [Attacks] src/main/node/masked-ports.ts
  it("in the error of a hook", async () => {
    const decide = () => Promise.reject(new Error(`no ${SECRET}`));
    await expect(maskedHook({ decide }, mask).decide(context)).rejects.toThrow(/^no \*\*\*$/);
  });

  // protects [Attacks] src/main/node/masked-ports.ts
  it("in the refusal of a signer, and in the reason why a signer is unavailable", async () => {
    const masked = (error: Error) => {
      const failing = () => Promise.reject(error);
      const signer: Signer = {
        addresses: () => ["0xaa"],
        custody: () => "local",
        sign: failing,
        signMessages: failing,
        close: async () => undefined,
      };
      return maskedSigner(signer, mask);
    };
    const refused = { name: "SigningRefused", index: 3, message: "not with ***" };
    const refusing = masked(new SigningRefused(3, `not with ${SECRET}`));
    const away = { name: "SignerAway", lies: true, message: "no answer to ***" };
    const lying = masked(new SignerAway(`no answer to ${SECRET}`, { lies: true }));
    for (const sign of ["sign", "signMessages"] as const) {
      await expect(refusing[sign]("0xaa", [])).rejects.toMatchObject(refused);
      await expect(lying[sign]("0xaa", [])).rejects.toMatchObject(away);
    }
  });
});
