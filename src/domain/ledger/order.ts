/**
 * The writes of one commit, by their place, in the order in which they are judged: as they came, but the ends of watches
 * last. A reorg that the same commit tells of is still told: what it moves is not past its watch.
 */
export function inOrder(writes: readonly { readonly kind: string }[]): readonly number[] {
  const places = [...writes.keys()];
  const endsWatch = (place: number) => writes[place]?.kind === "unwatch";
  return [...places.filter((place) => !endsWatch(place)), ...places.filter(endsWatch)];
}
