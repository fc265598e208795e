import type { FencepostError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { Telling } from "../../ports/peers.ts";

export type Fate<T> = T | FencepostError;

/** Something that only the owner of one lane can do: several items of it, each with a fate of its own. */
export interface Errand<T> {
  readonly lane: Lane;
  readonly items: number;
  /** Told again after silence it is still done once. Where not, silence is the end of it. */
  readonly repeatable: boolean;
  /** By this node, which may acquire the lane for it. */
  locally(which: readonly number[], repeat: boolean): Promise<readonly Fate<T>[]>;
  /** By another node. Throws `PeerUnreachable`. */
  remotely(url: string, which: readonly number[], telling: Telling): Promise<readonly Fate<T>[]>;
  /** What a caller is told of an item that some node may have done, unheard. */
  unknown(item: number): FencepostError;
}
