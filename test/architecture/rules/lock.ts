export interface LockedPackage {
  readonly version?: string;
  readonly license?: string;
  readonly hasInstallScript?: boolean;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  /** A development dependency, which is not installed by packages that depend on this one. */
  readonly dev?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * Locked packages by their location: "" is this package, `node_modules/x/node_modules/y` a copy of y that only x uses.
 */
export type Lock = Readonly<Record<string, LockedPackage>>;

const SYSTEMS = ["linux", "darwin"];
const PROCESSORS = ["x64", "arm64"];

/**
 * A native package is published once per platform, and the package that loads it lists all of these variants. npm
 * silently leaves a variant out of the lock file if it cannot find it. The lock file then works on one machine and
 * fails on another.
 */
export function missingPlatforms(lock: Lock): readonly string[] {
  return Object.entries(lock).flatMap(([place, locked]) => {
    const native = Object.keys({ ...locked.dependencies, ...locked.optionalDependencies }).filter(isNative);
    if (native.length === 0) return [];
    return SYSTEMS.flatMap((system) => PROCESSORS.map((processor) => `${system}-${processor}`)).flatMap((platform) =>
      missingOn(platform, native, lock).map((name) => `${place}: ${name}`),
    );
  });
}

function isNative(name: string): boolean {
  return SYSTEMS.some((system) => PROCESSORS.some((processor) => name.includes(`${system}-${processor}`)));
}

function missingOn(platform: string, native: readonly string[], lock: Lock): readonly string[] {
  const listed = native.filter((name) => name.includes(platform));
  if (listed.length === 0) return [`nothing for ${platform}`];
  const places = Object.keys(lock);
  return listed.filter((name) => !places.some((place) => place.endsWith(`node_modules/${name}`)));
}

/** Entries with the URL of a registry, which other machines may not reach, or without a hash to check the download. */
export function unportable(lock: Lock): readonly string[] {
  return Object.entries(lock)
    .filter(([place]) => place !== "")
    .filter(([, { resolved, integrity, link }]) => resolved !== undefined || (integrity === undefined && link !== true))
    .map(([place]) => place);
}
