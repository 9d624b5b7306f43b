/**
 * @param files absolute paths of the modules that went into the bundles
 * @returns one entry a package, in the order of names
 * @throws Error for a package that states no licence
 */
export function notices(files: Iterable<string>): string;
