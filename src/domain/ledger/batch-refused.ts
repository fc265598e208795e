/** The database answers with data it could not hold: one item poisons the batch. Bisecting finds it. */
export class BatchRefused extends Error {
  override readonly name = "BatchRefused";
}
