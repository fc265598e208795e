import { describe, expect, it } from "vitest";
import type { OwnedLane } from "../../../src/application/lane/owned-lane.ts";
import { takeWaiting } from "../../../src/application/loops/node-core.ts";
import type { WhatWaits } from "../../../src/ports/left-request-store.ts";

interface Look {
  readonly asked: readonly string[];
  readonly lanes: readonly (readonly OwnedLane[])[];
}

const open = { heldByHistory: false } as OwnedLane;
const held = { heldByHistory: true } as OwnedLane;

async function look(waits: WhatWaits): Promise<Look> {
  const asked: string[] = [];
  const lanes: (readonly OwnedLane[])[] = [];
  const taker = (name: string) => async (own: () => readonly OwnedLane[]) => {
    asked.push(name);
    lanes.push(own());
  };
  const parts = {
    store: {
      whatWaits: async () => {
        asked.push("the database");
        return waits;
      },
    },
    intakes: { look: taker("intents"), noteNews: () => void asked.push("news") },
    cluster: { dequeue: { look: taker("requests") } },
  };
  await takeWaiting({ ...parts, lanes: { all: () => [open, held] } });
  return { asked, lanes };
}

describe("a node's search for work that other nodes left for its lanes", () => {
  // protects [Many lanes] src/adapters/postgres/statements/intake.ts, src/application/loops/node-core.ts
  it("costs one database query if there is no work", async () => {
    expect(await look({ intents: false, requests: false })).toEqual({ asked: ["the database"], lanes: [] });
  });

  it("reads intents only for lanes that may allocate nonces", async () => {
    const both = await look({ intents: true, requests: true });
    expect(both).toEqual({ asked: ["the database", "intents", "news", "requests"], lanes: [[open], [open, held]] });
    expect((await look({ intents: true, requests: false })).asked).toEqual(["the database", "intents"]);
  });
});
