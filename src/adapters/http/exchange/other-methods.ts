/** Methods of each registered path pattern. Filled while routes are registered. */
export type Served = ReadonlyMap<string, ReadonlySet<string>>;

export interface ServedUrl {
  /** Path pattern, as registered. */
  readonly url: string;
  /** Value of the header `Allow`. */
  readonly allow: string;
}

/** Longest parameter of a path that the router accepts. */
export const MAX_PARAMETER_LENGTH = 255;

/** Path patterns without parameters that are also matched by one with parameters: `/tx/batch` by `/tx/:id`. */
export function ambiguous(served: Served): string[] {
  const withParameters = [...served.keys()].filter((url) => url.includes(":")).map((url) => url.split("/"));
  const isMatched = (path: readonly string[]) => withParameters.some((pattern) => matches(pattern, path));
  return [...served.keys()].filter((url) => !url.includes(":") && isMatched(url.split("/")));
}

/**
 * Makes a function that finds the path pattern which a request's URL matches, whatever its method. It is for requests
 * without a route, to tell a wrong method from a wrong path. Routes that refuse the other methods would take more time
 * to register than all the others.
 */
export function urlFinder(served: Served): (requested: string) => ServedUrl | undefined {
  return (requested) => {
    const path = pathOf(requested).split("/");
    const matching = [...served].filter(([url]) => matches(url.split("/"), path));
    // The router prefers a path without parameters.
    const [found] = matching.sort(([one], [other]) => Number(one.includes(":")) - Number(other.includes(":")));
    return found && { url: found[0], allow: [...found[1]].sort().join(", ") };
  };
}

function matches(pattern: readonly string[], path: readonly string[]) {
  if (pattern.length !== path.length) return false;
  return pattern.every((segment, at) => {
    const given = path[at] ?? "";
    if (!segment.startsWith(":")) return segment === given;
    return given !== "" && given.length <= MAX_PARAMETER_LENGTH;
  });
}

function pathOf(requested: string) {
  const path = requested.split("?", 1)[0] ?? "";
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
