/**
 * An immutable map with ordered keys: setting or deleting returns a new map, which shares all nodes with the old one
 * except the path to the key. A weight-balanced tree (Adams, "Efficient sets: a balancing act", 1993), with the
 * parameters that Hirai and Yamamoto proved right ("Balancing weight-balanced trees", 2011).
 */
const DELTA = 3;
const RATIO = 2;

export type Key = number | string;

interface Node<K, V> {
  readonly key: K;
  readonly value: V;
  readonly size: number;
  readonly left: Tree<K, V>;
  readonly right: Tree<K, V>;
}

type Tree<K, V> = Node<K, V> | null;

export class OrderedMap<K extends Key, V> {
  private readonly root: Tree<K, V>;

  private constructor(root: Tree<K, V>) {
    this.root = root;
  }

  static of<K extends Key, V>(entries: Iterable<readonly [K, V]> = []): OrderedMap<K, V> {
    return new OrderedMap<K, V>(null).with(entries);
  }

  with(entries: Iterable<readonly [K, V]>): OrderedMap<K, V> {
    let { root } = this;
    for (const [key, value] of entries) root = inserted(root, key, value);
    return new OrderedMap(root);
  }

  get size(): number {
    return sizeOf(this.root);
  }

  get(key: K): V | undefined {
    let node = this.root;
    while (node !== null) {
      if (key < node.key) node = node.left;
      else if (key > node.key) node = node.right;
      else return node.value;
    }
    return undefined;
  }

  set(key: K, value: V): OrderedMap<K, V> {
    return new OrderedMap(inserted(this.root, key, value));
  }

  delete(key: K): OrderedMap<K, V> {
    const root = removed(this.root, key);
    return root === this.root ? this : new OrderedMap(root);
  }

  /** Entries in ascending order, starting at the key `from` if it is given. */
  *entries(from?: K): IterableIterator<readonly [K, V]> {
    const path: Node<K, V>[] = [];
    let node = this.root;
    for (;;) {
      while (node !== null) {
        const isIn: boolean = from === undefined || node.key >= from;
        if (isIn) path.push(node);
        node = isIn ? node.left : node.right;
      }
      const next = path.pop();
      if (next === undefined) return;
      yield [next.key, next.value];
      node = next.right;
    }
  }
}

function sizeOf<K, V>(tree: Tree<K, V>) {
  return tree === null ? 0 : tree.size;
}

function inserted<K extends Key, V>(tree: Tree<K, V>, key: K, value: V): Node<K, V> {
  if (tree === null) return { key, value, size: 1, left: null, right: null };
  const { left, right } = tree;
  if (key < tree.key) return balanced(tree, inserted(left, key, value), right);
  if (key > tree.key) return balanced(tree, left, inserted(right, key, value));
  return { key, value, size: tree.size, left, right };
}

function removed<K extends Key, V>(tree: Tree<K, V>, key: K): Tree<K, V> {
  if (tree === null) return null;
  const { left, right } = tree;
  if (key < tree.key) {
    const less = removed(left, key);
    return less === left ? tree : balanced(tree, less, right);
  }
  if (key > tree.key) {
    const more = removed(right, key);
    return more === right ? tree : balanced(tree, left, more);
  }
  return joined(left, right);
}

/** Joins two trees whose root was removed: the lowest node of the right one becomes the root. */
function joined<K extends Key, V>(left: Tree<K, V>, right: Tree<K, V>): Tree<K, V> {
  if (right === null) return left;
  let lowest = right;
  while (lowest.left !== null) lowest = lowest.left;
  return balanced(lowest, left, removed(right, lowest.key));
}

type Entry<K, V> = Pick<Node<K, V>, "key" | "value">;

function joint<K, V>({ key, value }: Entry<K, V>, left: Tree<K, V>, right: Tree<K, V>): Node<K, V> {
  return { key, value, size: sizeOf(left) + sizeOf(right) + 1, left, right };
}

/** Rebalances a node. Its two subtrees were balanced before one entry was added or removed. */
function balanced<K, V>(entry: Entry<K, V>, left: Tree<K, V>, right: Tree<K, V>): Node<K, V> {
  const [less, more] = [sizeOf(left), sizeOf(right)];
  if (less + more < 2) return joint(entry, left, right);
  if (right !== null && right.size > DELTA * less) return turnedLeft(entry, left, right);
  if (left !== null && left.size > DELTA * more) return turnedRight(entry, left, right);
  return joint(entry, left, right);
}

function turnedLeft<K, V>(entry: Entry<K, V>, left: Tree<K, V>, right: Node<K, V>): Node<K, V> {
  const inner = right.left;
  if (inner === null || inner.size < RATIO * sizeOf(right.right)) {
    return joint(right, joint(entry, left, inner), right.right);
  }
  return joint(inner, joint(entry, left, inner.left), joint(right, inner.right, right.right));
}

function turnedRight<K, V>(entry: Entry<K, V>, left: Node<K, V>, right: Tree<K, V>): Node<K, V> {
  const inner = left.right;
  if (inner === null || inner.size < RATIO * sizeOf(left.left)) {
    return joint(left, left.left, joint(entry, inner, right));
  }
  return joint(inner, joint(left, left.left, inner.left), joint(entry, inner.right, right));
}
