/** Runs changes one after the other: one that reads, alters and writes a document must not meet another half way. */
export function oneByOne(): <T>(change: () => Promise<T>) => Promise<T> {
  let latest: Promise<unknown> = Promise.resolve();
  return (change) => {
    const made = latest.then(change);
    latest = made.catch(() => {}); // Its caller hears of it; the next change stands for itself.
    return made;
  };
}
