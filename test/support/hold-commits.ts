import type { WorldNode } from "./world.ts";

/** Makes commits wait from now on. The returned function returns true once a commit waits. */
export function holdCommits({ store }: WorldNode, until: Promise<void>): () => boolean {
  const commit = store.commit.bind(store);
  let isHeldUp = false;
  Object.assign(store, {
    commit: async (writes: Parameters<typeof commit>[0]) => {
      isHeldUp = true;
      await until;
      return commit(writes);
    },
  });
  return () => isHeldUp;
}
