import { describe, expect, it } from "vitest";
import {
  judgeRefusal,
  stillUnconfirmed,
  type UnconfirmedRefusal,
} from "../../../src/domain/chain/unconfirmed-refusal.ts";

const SEEN = { firstBlock: 10 };

describe("the refusal of an accepted transaction", () => {
  it.each([
    [["refuses", "refuses"], 10, null, "confirmed"],
    [["refuses", "refuses", "refuses"], 10, null, "confirmed"],
    [["refuses", "accepts"], 10, null, "agreement"],
    [["refuses", "accepts"], 12, SEEN, "agreement"],
    [["refuses", "behind"], 12, SEEN, "behind"],
    [["refuses", "silent"], 12, SEEN, "silent"],
    [["refuses", "behind", "refuses"], 12, SEEN, "behind"],
    [["refuses"], 10, null, "laterBlock"],
    [["refuses"], 10, SEEN, "laterBlock"],
    [["refuses"], 11, SEEN, "confirmed"],
    [["accepts"], 11, SEEN, "agreement"],
    [[], 11, SEEN, "silent"],
  ] as const)(
    "with endpoint answers %j at block %i and the earlier refusal %j gets the verdict %s",
    (words, block, seen, verdict) => {
      expect(judgeRefusal(words, block, seen)).toBe(verdict);
    },
  );

  it("is rechecked less and less often while unconfirmed", () => {
    const look = { txId: "a", reason: "why", waitsFor: "agreement", since: new Date(1) } as const;
    let seen: UnconfirmedRefusal | null = null;
    const apart: number[] = [];
    for (let block = 10, n = 0; n < 10; n++) {
      seen = stillUnconfirmed(seen, { ...look, block, since: new Date(n) });
      apart.push(seen.nextBlock - block);
      block = seen.nextBlock;
    }
    expect(apart).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 8, 8]);
    expect(seen).toMatchObject({ firstBlock: 10, since: new Date(0), looks: 10 });
  });
});
