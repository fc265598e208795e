import { type Static, Type } from "typebox";
import { ChainId, nullable, oneOf } from "./scalars.ts";

export const Health = Type.Object({ status: oneOf(["ok"]), version: Type.String() }, { title: "Health" });
export type Health = Static<typeof Health>;

export const Readiness = Type.Object(
  {
    ready: Type.Boolean(),
    database: Type.Boolean(),
    chains: Type.Array(
      Type.Object({
        chainId: ChainId,
        reachable: Type.Boolean(),
        head: nullable(Type.Integer({ minimum: 0 })),
      }),
    ),
    draining: Type.Boolean({ description: "The node is on its way out; requests are still taken." }),
  },
  { title: "Readiness", description: "Says which part is missing." },
);

export const ReadinessQuery = Type.Object({
  chain: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: "Chain id: ready where this chain is served. Without it, where any of the configured chains is.",
    }),
  ),
});
export type Readiness = Static<typeof Readiness>;
