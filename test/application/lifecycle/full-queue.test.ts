import { describe, expect, it } from "vitest";
import { Reception } from "../../../src/application/loops/reception.ts";

function reception(cluster: { readonly peers: number; readonly forwards: boolean }, underWay: number): Reception {
  return new Reception({
    admission: { underWay, perNode: 10 },
    lease: { mayAct: () => true },
    cluster,
    wakefulness: { pausedMs: () => 0 },
  });
}

describe("a node whose queue is full", () => {
  it.each([
    ["is alone", { peers: 0, forwards: true }],
    ["forwards nothing to other nodes", { peers: 2, forwards: false }],
  ])("refuses creates before reading them if the node %s", (_, cluster) => {
    expect(reception(cluster, 10).admittance()).toMatchObject({ kind: "closed" });
    expect(reception(cluster, 9).admittance()).toEqual({ kind: "open" });
  });

  // protects [Short of time] src/application/loops/reception.ts
  it("still reads creates if other nodes may own the lanes", () => {
    expect(reception({ peers: 1, forwards: true }, 10).admittance()).toEqual({ kind: "open" });
  });
});
